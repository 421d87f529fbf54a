from __future__ import annotations

import platform
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from provml_lightning.samplers.apple import open_apple
from provml_lightning.samplers.interval import Cursor
from provml_lightning.samplers.sampler import Sampler

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.fakes.clock import ManualClock


def test_elsewhere_there_is_nothing_and_nothing_is_said_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    opened = open_apple()
    assert (opened.channels, opened.remarks) == ((), ())


def test_on_a_mac_energy_is_that_of_the_package_s_counters(
    monkeypatch: pytest.MonkeyPatch, clock: ManualClock, installed: Callable[[Any], Any]
) -> None:
    counted = SimpleNamespace(cpu_total_mj=5000, dram_mj=None, gpu_mj=7000)
    module: Any = ModuleType("zeus_apple_silicon")
    module.AppleEnergyMonitor = lambda: SimpleNamespace(get_cumulative_energy=lambda: counted)
    installed(module)
    monkeypatch.setattr(platform, "system", lambda: "Darwin")

    cursor = Cursor(Sampler(open_apple().channels, clock=clock))
    counted.cpu_total_mj += 1500
    counted.gpu_mj += 250
    clock.sleep(1)
    interval = cursor.advance()

    assert interval.amount("cpu.energy") == 1.5
    assert interval.amount("gpu.energy") == 0.25
    assert interval.amount("ram.energy") is None
    assert interval.source("gpu.energy") == "apple"


def test_a_mac_without_the_package_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    opened = open_apple()
    assert not opened.channels
    assert "no zeus-apple-silicon" in opened.remarks[0]
