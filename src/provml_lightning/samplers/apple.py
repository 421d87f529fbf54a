"""Apple's own chips, through the package zeus-apple-silicon, where it is installed."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

from provml_lightning.errors import SamplerReadError
from provml_lightning.samplers.base import About, Accumulated, Channel, Counter, Opened

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["open_apple"]

_NANO_PER_COUNT = 1_000_000  # a count is a millijoule
_FIELDS = {"cpu.energy": "cpu_total_mj", "ram.energy": "dram_mj", "gpu.energy": "gpu_mj"}


def open_apple() -> Opened:
    """Open the energy of CPU, RAM and GPU.

    Source:
        ``AppleEnergyMonitor.get_cumulative_energy`` (IOReport), which needs no privileges.
    """
    if platform.system() != "Darwin":
        return Opened()
    try:
        import zeus_apple_silicon

        monitor: Any = zeus_apple_silicon.AppleEnergyMonitor()
        told = monitor.get_cumulative_energy()
    except Exception as error:  # noqa: BLE001  an Intel Mac, or no such package: no channels
        return Opened(remarks=[f"Apple: no zeus-apple-silicon ({type(error).__name__}: {error})"])
    channels: list[Channel] = [
        Accumulated(name, About("J", "apple"), [Counter(_reader(monitor, field), _NANO_PER_COUNT)])
        for name, field in _FIELDS.items()
        if getattr(told, field, None) is not None
    ]
    return Opened(channels)


def _reader(monitor: Any, field: str) -> Callable[[], int]:
    def read() -> int:
        value = getattr(monitor.get_cumulative_energy(), field)
        if value is None:
            raise SamplerReadError(f"{field} is not told")
        return int(value)

    return read
