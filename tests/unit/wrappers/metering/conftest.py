"""A machine whose powers are known: 100 W of CPUs, always, and 10 W of RAM."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

import pytest

from provml_lightning.wrappers.metering import sensing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CARBON = ("COUNTRY", "REGION", "CARBON_INTENSITY", "PUE", "POWERCAP")


@pytest.fixture(autouse=True)
def known_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in CARBON:
        monkeypatch.delenv(f"PROVML_{name}", raising=False)
    monkeypatch.setenv("PROVML_POWERCAP", str(tmp_path / "no powercap"))
    monkeypatch.setenv("PROVML_CPU_TDP_W", "100")
    monkeypatch.setenv("PROVML_CPU_IDLE_FRACTION", "1")
    monkeypatch.setenv("PROVML_RAM_POWER_W", "10")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    sensing._SENSORS.clear()  # noqa: SLF001  they were opened on another machine
    yield
    sensing._SENSORS.clear()  # noqa: SLF001


@pytest.fixture
def rows(tmp_path: Path) -> Callable[..., list[dict[str, str]]]:
    """Read a meter's rows back."""

    def read(name: str = "emissions.csv") -> list[dict[str, str]]:
        with (tmp_path / name).open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    return read
