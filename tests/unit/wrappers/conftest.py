from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import prov4ml
from provml_lightning.storage.contents import read_contents
from provml_lightning.storage.layout import RunLayout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Any]:
    """A run that every tracked call goes to."""
    with prov4ml.start_run("digits", provenance_save_dir=tmp_path) as opened:
        yield opened


@pytest.fixture
def records(run: Any) -> Callable[[type], list[Any]]:
    """Read the facts of one kind back from the run's files."""

    def read(kind: type) -> list[Any]:
        contents = read_contents(RunLayout(run.directory))
        return [record for _, record in contents.records if isinstance(record, kind)]

    return read


@pytest.fixture
def activities(run: Any) -> Callable[[], dict[str, Any]]:
    """Close the run and return the activities of its document."""

    def read() -> dict[str, Any]:
        run.close()
        document = json.loads((run.directory / "prov_digits_0.json").read_text("utf-8"))
        stated: dict[str, Any] = document["activity"]
        return stated

    return read
