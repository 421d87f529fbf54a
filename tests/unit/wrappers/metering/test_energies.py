from __future__ import annotations

from types import MappingProxyType

import pytest

from provml_lightning.samplers.base import About, Level, Total
from provml_lightning.samplers.interval import Interval
from provml_lightning.samplers.sampler import Snapshot
from provml_lightning.wrappers.metering.energies import Energies, energies_of

NANO = 1_000_000_000
ABOUT = MappingProxyType(
    {
        **{f"{name}.energy": About("J", f"source of {name}") for name in ("cpu", "ram", "gpu")},
        "cpu.core_energy": About("J", "rapl"),
        "cpu.usage": About("%", "procfs"),
        "process.cpu": About("s", "process_time"),
    }
)


def interval(levels: dict[str, float] | None = None, **amounts: float) -> Interval:
    """Return ten seconds in which channels, with _ for the dot, accumulated amounts."""
    names = {name.replace("_", ".", 1): amount for name, amount in amounts.items()}
    begun = {name: Total(0, 5 * NANO) for name in names}
    ended = {
        name: Total(10 * NANO, 5 * NANO + round(amount * NANO)) for name, amount in names.items()
    }
    stood = {name: Level(10 * NANO, value) for name, value in (levels or {}).items()}
    end = Snapshot(10 * NANO, MappingProxyType(ended), MappingProxyType(stood), ABOUT)
    return Interval(begun, end, end)


def test_the_process_has_its_share_of_cpu_time_and_of_memory() -> None:
    # Two CPUs, half busy for 10 s: 10 s of CPU time, 4 of them this process's.
    found = energies_of(
        interval(
            {"process.ram": 2e9, "ram": 8e9},
            cpu_energy=500.0, ram_energy=40.0, gpu_energy=70.0, cpu_core_energy=300.0,
            cpu_usage=500.0, process_cpu=4.0,
        ),
        cpus=2,
    )  # fmt: skip
    assert (found.cpu, found.cores, found.ram, found.gpu) == (500.0, 300.0, 40.0, 70.0)
    assert found.process_cpu == pytest.approx(200.0)
    assert found.process_ram == pytest.approx(10.0)
    assert found.used == pytest.approx(280.0)
    assert found.sources == {name: f"source of {name}" for name in ("cpu", "ram", "gpu")}


@pytest.mark.parametrize(
    ("own", "usage", "share"), [(0.0, 0.0, 0.0), (0.02, 0.0, 1.0), (3.0, 100.0, 1.0)]
)
def test_a_share_is_between_nothing_and_all(own: float, usage: float, share: float) -> None:
    # The kernel's ticks may not show yet what the process's own clock does.
    found = energies_of(interval(cpu_energy=80.0, cpu_usage=usage, process_cpu=own), cpus=2)
    assert found.process_cpu == pytest.approx(80.0 * share)


def test_without_the_machine_s_cpu_time_the_share_is_not_known() -> None:
    found = energies_of(interval(cpu_energy=80.0, process_cpu=1.0), cpus=2)
    assert (found.cpu, found.process_cpu, found.used) == (80.0, None, None)


def test_a_machine_without_sensors_has_nothing() -> None:
    assert energies_of(interval(), cpus=2) == Energies()


def test_a_further_rank_tells_of_its_own_share_alone() -> None:
    whole = interval(cpu_energy=80.0, gpu_energy=7.0, cpu_usage=100.0, process_cpu=1.0)
    found = energies_of(whole, cpus=2, machine=False)
    assert found.cpu is found.cores is found.ram is None
    assert (found.process_cpu, found.gpu) == (pytest.approx(40.0), 7.0)
