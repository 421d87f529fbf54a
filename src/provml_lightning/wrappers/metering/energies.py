"""What a piece of code used: the machine's energy over its time, and this process's share of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provml_lightning.domain.carbon import Electricity
    from provml_lightning.samplers.interval import Interval

__all__ = ["NEEDED", "Energies", "energies_of"]

NEEDED = frozenset(
    {
        *("cpu.energy", "cpu.core_energy", "ram.energy", "gpu.energy"),
        *("cpu.usage", "process.cpu", "ram", "process.ram"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Energies:
    """Energies over one measure [J]; what could not be measured is None.

    Attributes:
        cpu: Of the machine's CPU packages.
        cores: Of the cores in them.
        ram: Of the machine's memory.
        gpu: Of this process's GPUs, whoever used them.
        process_cpu: This process's share of ``cpu``, without its children's.
        process_ram: This process's share of ``ram``.
        sources: Where each of the machine's energies comes from, by name.
    """

    cpu: float | None = None
    cores: float | None = None
    ram: float | None = None
    gpu: float | None = None
    process_cpu: float | None = None
    process_ram: float | None = None
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def used(self) -> float | None:
        """What the code used [J]: its CPU share, with those of memory and GPUs that are known."""
        if self.process_cpu is None:
            return None
        return self.process_cpu + (self.process_ram or 0.0) + (self.gpu or 0.0)

    def emissions(self, electricity: Electricity) -> float | None:
        """Return the emissions of what the code used [gCO2eq]; None where they are not known."""
        factor = electricity.grams_per_joule
        return None if factor is None or self.used is None else self.used * factor


def energies_of(interval: Interval, cpus: int, *, machine: bool = True) -> Energies:
    """Return what an interval tells.

    Args:
        interval: The time of the measure.
        cpus: Number of the machine's CPUs [1].
        machine: This process is the one that tells of the machine; the others of the same
            training tell of their own share alone, so that their rows may be added.
    """
    cpu, ram = interval.amount("cpu.energy"), interval.amount("ram.energy")
    gpu = interval.amount("gpu.energy")
    found = {"cpu": cpu, "ram": ram, "gpu": gpu}
    return Energies(
        cpu=cpu if machine else None,
        cores=interval.amount("cpu.core_energy") if machine else None,
        ram=ram if machine else None,
        gpu=gpu,
        process_cpu=_share(cpu, _cpu_share(interval, cpus)),
        process_ram=_share(ram, _ram_share(interval)),
        sources={
            name: interval.source(f"{name}.energy")
            for name, energy in found.items()
            if energy is not None
        },
    )


def _share(energy: float | None, share: float | None) -> float | None:
    return None if energy is None or share is None else energy * share


def _cpu_share(interval: Interval, cpus: int) -> float | None:
    """Return this process's CPU time over that of all processes, in the same window [1].

    The kernel counts the machine's in hundredths of a second and the process's in nanoseconds, so
    that over short times the whole may look smaller than its part.
    """
    own, usage = interval.amount("process.cpu"), interval.amount("cpu.usage")
    if own is None or usage is None:
        return None
    return own / max(own, usage / 100 * cpus) if own else 0.0


def _ram_share(interval: Interval) -> float | None:
    """Return this process's resident memory over the memory in use, at the end [1]."""
    own, used = interval.level("process.ram"), interval.level("ram")
    if own is None or used is None:
        return None
    return own.value / max(own.value, used.value) if own.value else 0.0
