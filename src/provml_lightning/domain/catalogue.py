"""Every metric that the library measures itself: its name, unit, meaning and possible sources."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "CARBON_METRICS",
    "EPOCH_TIME",
    "OF_CARBON",
    "OF_SYSTEM",
    "SYSTEM_METRICS",
    "WORK_METRICS",
    "Metric",
    "is_source_of_ours",
]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that we emit ourselves.

    Attributes:
        name: What it is logged as.
        unit: Unit of its values; GB is 10⁹ bytes.
        meaning: What a value says, in one phrase.
        sources: What can be in the column ``source``, the best first.
    """

    name: str
    unit: str
    meaning: str
    sources: tuple[str, ...]


_CPU_TIME = ("procfs", "psutil")
_CPU_ENERGY = ("rapl", "rapl.psys", "apple", "model.tdp")
_RAM_ENERGY = ("rapl", "apple", "model.dimm")
_RAM = ("cgroup", "psutil")
_DISK = ("statvfs",)
_GPU = ("nvml", "amdsmi")
_GPU_ENERGY = (
    "nvml.energy", "nvml.power", "nvml.energy.mig-parent", "nvml.power.mig-parent",
    "amdsmi.energy", "amdsmi.power", "apple",
)  # fmt: skip

# The topic of notes on what log_system_metrics does not find.
OF_SYSTEM = "system metrics"

# Before the source of what log_carbon_metrics keeps: its intervals are not log_system_metrics's.
OF_CARBON = "carbon:"

_ANY_ENERGY = tuple(dict.fromkeys((*_CPU_ENERGY, *_GPU_ENERGY, *_RAM_ENERGY)))

# What log_carbon_metrics keeps; the source of a sum joins those of its parts with a plus.
CARBON_METRICS = (
    Metric("emissions", "gCO2eq", "emissions of the energy over the interval", _ANY_ENERGY),
    Metric("emissions_rate", "gCO2eq/s", "emissions a second, mean", _ANY_ENERGY),
    Metric("cpu_power", "W", "power of the machine's CPUs, mean", _CPU_ENERGY),
    Metric("gpu_power", "W", "power of the GPUs together, mean", _GPU_ENERGY),
    Metric("ram_power", "W", "power of the RAM, mean", _RAM_ENERGY),
    Metric("cpu_energy", "J", "energy of the machine's CPUs over the interval", _CPU_ENERGY),
    Metric("gpu_energy", "J", "energy of the GPUs together over the interval", _GPU_ENERGY),
    Metric("ram_energy", "J", "energy of the RAM over the interval", _RAM_ENERGY),
    Metric(
        "energy_consumed",
        "J",
        "energy of CPUs, GPUs and RAM over the interval, as far as each is known",
        _ANY_ENERGY,
    ),
)

# What a Lightning training keeps by itself.
EPOCH_TIME = Metric(
    "epoch_time",
    "s",
    "from the start of an epoch to its end; of training with the validation within it",
    ("lightning",),
)

# What log_system_metrics keeps, in the order of the documents.
SYSTEM_METRICS = (
    Metric("cpu_usage_pct", "%", "busy share of the machine's CPU time, mean", _CPU_TIME),
    Metric("cpu_power", "W", "power of the machine's CPUs, mean", _CPU_ENERGY),
    Metric("cpu_energy", "J", "energy of the machine's CPUs over the interval", _CPU_ENERGY),
    Metric("ram_usage_pct", "%", "used share of the RAM that may be used", _RAM),
    Metric("ram_usage_gb", "GB", "RAM in use", _RAM),
    Metric("ram_power", "W", "power of the RAM, mean", _RAM_ENERGY),
    Metric("ram_energy", "J", "energy of the RAM over the interval", _RAM_ENERGY),
    Metric("disk_usage_gb", "GB", "space in use on the file system of the run", _DISK),
    Metric("disk_usage_pct", "%", "used share of the space that a user may use there", _DISK),
    Metric("gpu_usage_pct", "%", "time in which the GPUs computed, mean over time and GPUs", _GPU),
    Metric("gpu_power", "W", "power of the GPUs together, mean", _GPU_ENERGY),
    Metric("gpu_energy", "J", "energy of the GPUs together over the interval", _GPU_ENERGY),
    Metric("gpu_memory_usage_gb", "GB", "memory in use on the GPUs together", _GPU),
    Metric("gpu_memory_usage_pct", "%", "used share of the memory of the GPUs together", _GPU),
    Metric(
        "gpu_memory_power",
        "W",
        "power of the GPUs' memory together, mean",
        ("nvml", "nvml.mig-parent"),
    ),
    Metric("gpu_temperature_c", "°C", "temperature of the hottest GPU", _GPU),
)

_COUNTED = ("flops.meta", "flops.real")
_TIMED = ("perf_counter",)

# What FlopsMonitor keeps; the source of a speed joins those of its parts with a plus.
WORK_METRICS = (
    Metric("flops", "FLOP", "forward passes on the batches of the interval", _COUNTED),
    Metric(
        "flops_per_second",
        "FLOP/s",
        "the same a second",
        tuple(f"{c}+{_TIMED[0]}" for c in _COUNTED),
    ),
    Metric("macs", "MAC", "the same as thop counts it, instead of the FLOPs", ("thop",)),
    Metric("macs_per_second", "MAC/s", "the same a second", (f"thop+{_TIMED[0]}",)),
    Metric("batches_per_second", "1/s", "batches a second of the interval", _TIMED),
    Metric("samples_per_second", "1/s", "samples in them a second", _TIMED),
)

_SOURCES = frozenset(
    source
    for metric in (*CARBON_METRICS, EPOCH_TIME, *SYSTEM_METRICS, *WORK_METRICS)
    for source in metric.sources
)
_BEGINNINGS = (OF_CARBON, "flops.", "thop", "lightning", "perf_counter")


def is_source_of_ours(source: str | None) -> bool:
    """Tell whether a metric of this source is one that the library measures, not the user's own."""
    return source is not None and all(
        part in _SOURCES or part.startswith(_BEGINNINGS) for part in source.split("+")
    )
