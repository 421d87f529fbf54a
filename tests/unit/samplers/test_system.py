from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provml_lightning.domain.catalogue import SYSTEM_METRICS
from provml_lightning.samplers.base import About, Accumulated, Constant, Gauge
from provml_lightning.samplers.interval import Cursor
from provml_lightning.samplers.sampler import Sampler
from provml_lightning.samplers.system import missing_metrics, system_values

if TYPE_CHECKING:
    from tests.fakes.clock import ManualClock

# The first table of the documents, as it stands there.
DOCUMENTED = {
    "cpu_usage_pct": "%",
    "cpu_power": "W",
    "cpu_energy": "J",
    "ram_usage_pct": "%",
    "ram_usage_gb": "GB",
    "ram_power": "W",
    "ram_energy": "J",
    "disk_usage_gb": "GB",
    "disk_usage_pct": "%",
    "gpu_usage_pct": "%",
    "gpu_power": "W",
    "gpu_energy": "J",
    "gpu_memory_usage_gb": "GB",
    "gpu_memory_usage_pct": "%",
    "gpu_memory_power": "W",
    "gpu_temperature_c": "°C",
}


def test_the_catalogue_has_the_documents_sixteen_in_their_order_and_units() -> None:
    assert [(metric.name, metric.unit) for metric in SYSTEM_METRICS] == list(DOCUMENTED.items())


def test_all_sixteen_are_worked_out_in_their_units(clock: ManualClock) -> None:
    channels = [
        Accumulated("cpu.usage", About("%", "procfs"), [Constant(37.5)]),
        Accumulated("cpu.energy", About("J", "rapl"), [Constant(60.0)]),
        Gauge("ram", About("B", "psutil"), lambda: (8e9, 32e9)),
        Accumulated("ram.energy", About("J", "model.dimm"), [Constant(20.0)]),
        Gauge("disk", About("B", "statvfs"), lambda: (150e9, 600e9)),
        Accumulated("gpu.usage", About("%", "nvml"), [Constant(90.0)]),
        Accumulated("gpu.energy", About("J", "nvml.energy"), [Constant(250.0)]),
        Gauge("gpu.memory", About("B", "nvml"), lambda: (20e9, 80e9)),
        Accumulated("gpu.memory_energy", About("J", "nvml"), [Constant(45.0)]),
        Gauge("gpu.temperature", About("°C", "nvml"), lambda: (66.0, None)),
    ]
    cursor = Cursor(Sampler(channels, clock=clock))
    clock.sleep(2)

    values = system_values(cursor.advance())

    assert {value.name: value.value for value in values} == {
        "cpu_usage_pct": 37.5,
        "cpu_power": 60.0,
        "cpu_energy": 120.0,
        "ram_usage_pct": 25.0,
        "ram_usage_gb": 8.0,
        "ram_power": 20.0,
        "ram_energy": 40.0,
        "disk_usage_gb": 150.0,
        "disk_usage_pct": 25.0,
        "gpu_usage_pct": 90.0,
        "gpu_power": 250.0,
        "gpu_energy": 500.0,
        "gpu_memory_usage_gb": 20.0,
        "gpu_memory_usage_pct": 25.0,
        "gpu_memory_power": 45.0,
        "gpu_temperature_c": 66.0,
    }
    assert {value.name: value.unit for value in values} == DOCUMENTED
    assert {value.name: value.source for value in values}["ram_energy"] == "model.dimm"


@pytest.mark.parametrize(
    ("channels", "missing"),
    [
        ([], list(DOCUMENTED)),
        (
            ["cpu.usage", "cpu.energy", "ram", "ram.energy", "disk"],
            [name for name in DOCUMENTED if name.startswith("gpu_")],
        ),
    ],
)
def test_what_is_not_measured_is_named(channels: list[str], missing: list[str]) -> None:
    assert missing_metrics(channels) == missing


def test_nothing_is_made_up_where_there_is_nothing(clock: ManualClock) -> None:
    assert system_values(Cursor(Sampler(clock=clock)).advance()) == []
