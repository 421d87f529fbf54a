"""Each source of measurements keeps what the kit asks of all."""

from __future__ import annotations

import platform
import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from provml_lightning.samplers.amd import open_amd
from provml_lightning.samplers.apple import open_apple
from provml_lightning.samplers.base import About, Opened
from provml_lightning.samplers.host import CpuUsage, open_host, open_process
from provml_lightning.samplers.models import Tdp, cpu_model, ram_model
from provml_lightning.samplers.nvidia import open_nvidia
from provml_lightning.samplers.rapl import open_rapl
from tests.conformance.sampler_kit import SamplerKit
from tests.fakes.amdsmi import FakeAmdSmi, FakeCard
from tests.fakes.kernel import RANGE, Zone
from tests.fakes.nvml import NOT_SUPPORTED, FakeGpu, FakeNvml

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.fakes.clock import ManualClock


class TestNvidia(SamplerKit):
    watts = {"gpu.energy": 150.0}  # noqa: RUF012
    broken: dict[str, int] = {}  # noqa: RUF012

    @override
    def opened(self, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Opened:
        gpus = [
            FakeGpu(f"GPU-{name}", [(0.0, watts)], memory_watts=12.5, broken=self.broken)
            for name, watts in (("a", 100.0), ("b", 50.0))
        ]
        monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(clock, *gpus))
        return open_nvidia({})

    @override
    def missing(self, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Opened:
        monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(clock, driver=False))
        return open_nvidia({})


class TestNvidiaWithoutCounter(TestNvidia):
    broken = {"nvmlDeviceGetTotalEnergyConsumption": NOT_SUPPORTED}  # noqa: RUF012


class TestAmd(SamplerKit):
    watts = {"gpu.energy": 200.0}  # noqa: RUF012

    @override
    def opened(self, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Opened:
        cards = FakeCard(wrong=100.0), FakeCard(watts=0.0)
        monkeypatch.setitem(sys.modules, "amdsmi", FakeAmdSmi(clock, *cards))
        return open_amd({}, pause=clock.sleep, clock=clock)

    @override
    def missing(self, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Opened:
        monkeypatch.setitem(sys.modules, "amdsmi", None)
        return open_amd({}, pause=clock.sleep, clock=clock)


class TestApple(SamplerKit):
    watts = {"cpu.energy": 8.0, "gpu.energy": 4.0, "ram.energy": 2.0}  # noqa: RUF012

    @override
    def opened(self, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Opened:
        def told() -> SimpleNamespace:
            milli = clock.seconds * 1000
            fields = {"cpu_total_mj": 8, "gpu_mj": 4, "dram_mj": 2}
            return SimpleNamespace(**{name: round(w * milli) for name, w in fields.items()})

        module: Any = ModuleType("zeus_apple_silicon")
        module.AppleEnergyMonitor = lambda: SimpleNamespace(get_cumulative_energy=told)
        monkeypatch.setitem(sys.modules, "zeus_apple_silicon", module)
        monkeypatch.setattr(platform, "system", lambda: "Darwin")
        return open_apple()

    @override
    def missing(self, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Opened:
        monkeypatch.setitem(sys.modules, "zeus_apple_silicon", None)
        monkeypatch.setattr(platform, "system", lambda: "Darwin")
        return open_apple()


class TestRapl(SamplerKit):
    watts = {"cpu.energy": 90.0, "ram.energy": 5.0}  # noqa: RUF012
    _zones: list[tuple[Zone, int]]

    @override
    def opened(self, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Opened:
        starts = RANGE - 40_000_000, 77, 500_000_000  # the first one wraps on the way
        names = "package-0", "package-1", "dram"
        zones = [
            Zone(folder, f"intel-rapl:{number}", name, start)
            for number, (name, start) in enumerate(zip(names, starts, strict=True))
        ]
        self._zones = list(zip(zones, (60, 30, 5), strict=True))
        self._counts = list(starts)
        return open_rapl(folder, pause=clock.sleep)

    @override
    def missing(self, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Opened:
        return open_rapl(folder)

    @override
    def go_on(self, clock: ManualClock, seconds: float) -> None:
        super().go_on(clock, seconds)
        for number, (zone, watts) in enumerate(self._zones):
            self._counts[number] += round(watts * seconds * 1e6)
            zone.set(self._counts[number] % RANGE)


class TestHost(SamplerKit):
    watts = {}  # noqa: RUF012

    @override
    def opened(self, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Opened:
        return open_host(folder)

    @override
    def missing(self, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Opened:
        return open_host(folder, proc=folder, cgroups=folder)


class TestProcess(SamplerKit):
    watts = {}  # noqa: RUF012

    @override
    def opened(self, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Opened:
        return open_process()

    @override
    def missing(self, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Opened:
        return Opened()


class TestModels(SamplerKit):
    watts = {"cpu.energy": 55.0, "ram.energy": 10.0}  # noqa: RUF012  100 W, half busy: 10 + 45

    @override
    def opened(self, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Opened:
        def times() -> tuple[float, float]:
            return clock.now / 2, clock.now

        usage = CpuUsage("cpu.usage", About("%", "procfs"), times)
        cpu, _ = cpu_model(usage, Tdp(100.0, "a test"), {})
        ram, _ = ram_model(0.0, {"PROVML_RAM_POWER_W": "10"})
        return Opened([usage, cpu, ram])

    @override
    def missing(self, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Opened:
        return Opened()
