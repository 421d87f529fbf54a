"""A driver's library with GPUs whose power is scripted: energy is its integral, exactly."""

# ruff: noqa: N802, N815  the library's names

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fakes.clock import ManualClock

__all__ = ["FakeGpu", "FakeNvml"]

NOT_SUPPORTED, NOT_FOUND, INSUFFICIENT, LIBRARY_NOT_FOUND, GPU_IS_LOST, UNKNOWN = (
    3,
    6,
    7,
    12,
    15,
    999,
)


class NVMLError(Exception):
    """What the library raises."""

    def __init__(self, value: int) -> None:
        super().__init__(f"NVML error {value}")
        self.value = value


@dataclass
class FakeGpu:
    """A GPU that draws ``watts[0]`` until ``watts[1]`` begins at its time, and so on.

    Attributes:
        watts: Pairs of time [s] and power [W], constant until the next.
        period: How often the counter is refreshed [s]; 0: at once.
        broken: Calls that fail, and with which error.
    """

    uuid: str
    name: str | None = field(default="NVIDIA H100 80GB HBM3", kw_only=True)
    watts: list[tuple[float, float]] = field(default_factory=lambda: [(0.0, 100.0)])
    memory_watts: float = 0.0
    period: float = 0.0
    usage: int = 50
    used: int = 10 * 10**9
    total: int = 80 * 10**9
    temperature: int = 60
    parts: list[str] = field(default_factory=list)
    broken: dict[str, int] = field(default_factory=dict)
    offset: float = 1e6  # what the counter showed at the beginning [J]

    def power(self, time: float) -> float:
        """Return the power at a time [W]."""
        return [watts for begin, watts in self.watts if begin <= time][-1]

    def energy(self, time: float) -> float:
        """Return the integral of the power up to a time [J]."""
        if self.period:
            time = time // self.period * self.period
        ends = [begin for begin, _ in self.watts[1:]] + [float("inf")]
        return self.offset + sum(
            watts * max(min(time, end) - begin, 0.0)
            for (begin, watts), end in zip(self.watts, ends, strict=True)
        )


class FakeNvml(ModuleType):
    """Stands in for the module ``pynvml``; ``calls`` counts what was asked."""

    NVMLError = NVMLError
    NVML_SUCCESS = 0
    NVML_ERROR_NOT_SUPPORTED = NOT_SUPPORTED
    NVML_ERROR_LIBRARY_NOT_FOUND = LIBRARY_NOT_FOUND
    NVML_ERROR_GPU_IS_LOST = GPU_IS_LOST
    NVML_ERROR_UNKNOWN = UNKNOWN
    NVML_FI_DEV_POWER_AVERAGE = 185
    NVML_POWER_SCOPE_MEMORY = 2
    NVML_TEMPERATURE_GPU = 0
    nvmlMemory_v2 = 0x02000028

    def __init__(self, clock: ManualClock, *gpus: FakeGpu, driver: bool = True) -> None:
        super().__init__("pynvml")
        self.clock = clock
        self.gpus = gpus
        self.driver = driver
        self.opened = 0
        self.calls: Counter[str] = Counter()

    def _gpu(self, handle: Any, call: str) -> FakeGpu:
        self.calls[call] += 1
        if isinstance(handle, tuple):  # a part
            if call not in ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUUID", "nvmlDeviceGetName"):
                raise NVMLError(NOT_SUPPORTED)
            handle = handle[0]
        gpu = handle
        assert isinstance(gpu, FakeGpu)
        if call in gpu.broken:
            raise NVMLError(gpu.broken[call])
        return gpu

    def nvmlInit(self) -> None:
        if not self.driver:
            raise NVMLError(LIBRARY_NOT_FOUND)
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self.opened -= 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:
        return self.gpus[index]

    def nvmlDeviceGetUUID(self, handle: Any) -> str:
        gpu = self._gpu(handle, "nvmlDeviceGetUUID")
        return handle[1] if isinstance(handle, tuple) else gpu.uuid

    def nvmlDeviceGetName(self, handle: Any) -> str:
        gpu = self._gpu(handle, "nvmlDeviceGetName")
        if gpu.name is None:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "an old driver's name")
        return gpu.name

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: Any) -> int:
        gpu = self._gpu(handle, "nvmlDeviceGetMaxMigDeviceCount")
        if not gpu.parts:
            raise NVMLError(NOT_SUPPORTED)
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: FakeGpu, index: int) -> Any:
        if index >= len(handle.parts):
            raise NVMLError(NOT_FOUND)
        return (handle, handle.parts[index])

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any) -> int:
        gpu = self._gpu(handle, "nvmlDeviceGetTotalEnergyConsumption")
        return round(gpu.energy(self.clock.seconds) * 1000)

    def nvmlDeviceGetPowerUsage(self, handle: Any) -> int:
        gpu = self._gpu(handle, "nvmlDeviceGetPowerUsage")
        return round(gpu.power(self.clock.seconds) * 1000)

    def nvmlDeviceGetFieldValues(self, handle: Any, fields: list[tuple[int, int]]) -> Any:
        gpu = self._gpu(handle, "nvmlDeviceGetFieldValues")
        assert fields == [(185, 2)]
        code = gpu.broken.get("field", 0)
        value = SimpleNamespace(uiVal=round(gpu.memory_watts * 1000))
        return [SimpleNamespace(nvmlReturn=code, value=value)]

    def nvmlDeviceGetUtilizationRates(self, handle: Any) -> Any:
        return SimpleNamespace(gpu=self._gpu(handle, "nvmlDeviceGetUtilizationRates").usage)

    def nvmlDeviceGetMemoryInfo(self, handle: Any, version: int | None = None) -> Any:
        gpu = self._gpu(handle, "nvmlDeviceGetMemoryInfo")
        reserved = 0 if version else 10**9  # the first version counts it as used
        return SimpleNamespace(used=gpu.used + reserved, total=gpu.total)

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: int) -> int:
        assert sensor == 0
        return self._gpu(handle, "nvmlDeviceGetTemperature").temperature
