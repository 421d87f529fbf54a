from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provml_lightning.domain.carbon import Electricity
from provml_lightning.domain.catalogue import CARBON_METRICS
from provml_lightning.samplers.base import About, Accumulated, Constant
from provml_lightning.samplers.carbon import carbon_values
from provml_lightning.samplers.interval import Cursor
from provml_lightning.samplers.sampler import Sampler

if TYPE_CHECKING:
    from tests.fakes.clock import ManualClock

CHANNELS = (
    ("cpu.energy", "rapl", 60.0),
    ("ram.energy", "model.dimm", 20.0),
    ("gpu.energy", "nvml.energy", 250.0),
)


def cursor(clock: ManualClock, *names: str) -> Cursor:
    channels = [
        Accumulated(name, About("J", source), [Constant(watts)])
        for name, source, watts in CHANNELS
        if name in names
    ]
    return Cursor(Sampler(channels, clock=clock))


def test_emissions_are_energy_times_intensity_times_pue(clock: ManualClock) -> None:
    asked = cursor(clock, "cpu.energy", "ram.energy", "gpu.energy")
    clock.sleep(2)
    values = carbon_values(asked.advance(), Electricity(intensity=360.0, pue=1.5))

    # 330 W for 2 s are 660 J; 360 g/kWh are 0.0001 g/J.
    assert {value.name: value.value for value in values} == pytest.approx(
        {
            "cpu_power": 60.0,
            "ram_power": 20.0,
            "gpu_power": 250.0,
            "cpu_energy": 120.0,
            "ram_energy": 40.0,
            "gpu_energy": 500.0,
            "energy_consumed": 660.0,
            "emissions": 0.099,
            "emissions_rate": 0.0495,
        }
    )
    assert {value.name for value in values} == {metric.name for metric in CARBON_METRICS}


def test_units_are_the_documents_and_sources_tell_sensors_from_models(clock: ManualClock) -> None:
    asked = cursor(clock, "cpu.energy", "ram.energy")
    clock.sleep(2)
    told = {
        value.name: (value.unit, value.source)
        for value in carbon_values(asked.advance(), Electricity(intensity=100.0))
    }
    assert told == {
        "cpu_power": ("W", "carbon:rapl"),
        "ram_power": ("W", "carbon:model.dimm"),
        "cpu_energy": ("J", "carbon:rapl"),
        "ram_energy": ("J", "carbon:model.dimm"),
        "energy_consumed": ("J", "carbon:rapl+model.dimm"),
        "emissions": ("gCO2eq", "carbon:rapl+model.dimm"),
        "emissions_rate": ("gCO2eq/s", "carbon:rapl+model.dimm"),
    }


def test_without_an_intensity_there_are_energies_alone(clock: ManualClock) -> None:
    asked = cursor(clock, "cpu.energy")
    clock.sleep(2)
    names = {value.name for value in carbon_values(asked.advance(), Electricity(pue=1.5))}
    assert names == {"cpu_power", "cpu_energy", "energy_consumed"}


def test_without_a_sensor_there_is_nothing_and_not_zero(clock: ManualClock) -> None:
    asked = cursor(clock)
    clock.sleep(2)
    assert carbon_values(asked.advance(), Electricity(intensity=100.0)) == []


def test_emissions_of_intervals_add_up_to_those_of_the_whole(clock: ManualClock) -> None:
    asked = cursor(clock, "cpu.energy")
    electricity = Electricity(intensity=3600.0)  # 0.001 g/J
    emissions = 0.0
    for seconds in (0.01, 3.0, 0.5, 7.25, 0.24):
        clock.sleep(seconds)
        values = {value.name: value.value for value in carbon_values(asked.advance(), electricity)}
        emissions += values["emissions"]
    assert emissions == pytest.approx(60.0 * 11.0 * 0.001)
