"""The documents' sixteen system metrics, from what a sampler has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from provml_lightning.domain.catalogue import SYSTEM_METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from provml_lightning.samplers.interval import Interval

    Derive = Callable[[Interval, str], float | None]

__all__ = ["Value", "missing_metrics", "system_values"]

_GB = 1_000_000_000


class Value(NamedTuple):
    """A metric's value over an interval."""

    name: str
    value: float
    unit: str
    source: str


def system_values(interval: Interval) -> list[Value]:
    """Return the metrics that are known; the others are not in it."""
    values = []
    for metric in SYSTEM_METRICS:
        channel, derive = _DERIVED[metric.name]
        value = derive(interval, channel)
        if value is not None:
            values.append(Value(metric.name, value, metric.unit, interval.source(channel)))
    return values


def missing_metrics(channels: Iterable[str]) -> list[str]:
    """Return the metrics that cannot be had from channels."""
    present = set(channels)
    return [metric.name for metric in SYSTEM_METRICS if _DERIVED[metric.name][0] not in present]


def _amount(interval: Interval, channel: str) -> float | None:
    return interval.amount(channel)


def _rate(interval: Interval, channel: str) -> float | None:
    return interval.rate(channel)


def _level(interval: Interval, channel: str) -> float | None:
    level = interval.level(channel)
    return None if level is None else level.value


def _gigabytes(interval: Interval, channel: str) -> float | None:
    level = interval.level(channel)
    return None if level is None else level.value / _GB


def _share(interval: Interval, channel: str) -> float | None:
    level = interval.level(channel)
    return 100 * level.value / level.capacity if level is not None and level.capacity else None


_DERIVED: dict[str, tuple[str, Derive]] = {
    "cpu_usage_pct": ("cpu.usage", _rate),
    "cpu_power": ("cpu.energy", _rate),
    "cpu_energy": ("cpu.energy", _amount),
    "ram_usage_pct": ("ram", _share),
    "ram_usage_gb": ("ram", _gigabytes),
    "ram_power": ("ram.energy", _rate),
    "ram_energy": ("ram.energy", _amount),
    "disk_usage_gb": ("disk", _gigabytes),
    "disk_usage_pct": ("disk", _share),
    "gpu_usage_pct": ("gpu.usage", _rate),
    "gpu_power": ("gpu.energy", _rate),
    "gpu_energy": ("gpu.energy", _amount),
    "gpu_memory_usage_gb": ("gpu.memory", _gigabytes),
    "gpu_memory_usage_pct": ("gpu.memory", _share),
    "gpu_memory_power": ("gpu.memory_energy", _rate),
    "gpu_temperature_c": ("gpu.temperature", _level),
}
