"""What a run and its contexts cost, as the document says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.domain.measured import Measured, Total
from tests.conformance.prov.runs import at, metric

if TYPE_CHECKING:
    from collections.abc import Callable

    from provml_lightning.domain.values import Plain
    from tests.unit.provenance.conftest import Stated

RUN = "run/digits_0"


def measured(second: float, since: int = 7, **changes: Plain | dict[str, Plain] | None) -> Measured:
    told = {
        "energies": {"cpu": 100.0, "ram": 20.0},
        "sources": {"cpu": "rapl", "ram": "model.dimm"},
        "hardware": {"cpu": "EPYC, 64 threads", "ram": "256.0 GiB"},
        "emissions": 0.25,
    }
    return Measured(time=at(second), since=since, **{**told, **changes})  # type: ignore[arg-type]


def costs(stated: Stated, activity: str) -> dict[str, object]:
    words = ("energy", "emissions", "flops", "macs", "hardware")
    return {
        name.removeprefix("provml:"): float(value["$"]) if isinstance(value, dict) else value
        for name, value in stated.activities[activity].items()
        if any(word in name for word in words)
    }


def test_a_run_states_energy_emissions_and_hardware_with_units_and_sources(
    states: Callable[..., Stated],
) -> None:
    assert costs(states(measured(30)), RUN) == {
        "total_energy": 120.0,
        "total_energy_unit": "J",
        "total_energy_source": "rapl+model.dimm",
        "total_emissions": 0.25,
        "total_emissions_unit": "gCO2eq",
        "total_emissions_source": "rapl+model.dimm",
        "cpu_hardware": "EPYC, 64 threads",
        "ram_hardware": "256.0 GiB",
    }


def test_a_samplers_later_word_replaces_its_earlier_one(states: Callable[..., Stated]) -> None:
    later = measured(40, energies={"cpu": 300.0, "ram": 60.0}, emissions=0.75)
    told = costs(states(measured(30), later), RUN)
    assert told["total_energy"] == 360.0
    assert told["total_emissions"] == 0.75


def test_samplers_of_several_processes_and_of_a_resumed_one_are_added(
    states: Callable[..., Stated],
) -> None:
    gpu = {"energies": {"gpu": 500.0}, "sources": {"gpu": "nvml.energy"}, "emissions": None}
    other = measured(31, hardware={"gpu": "H100 (GPU-b)"}, **gpu)
    told = costs(states(measured(30), (1, other), measured(50, since=8)), RUN)
    assert told["total_energy"] == 120.0 + 500.0 + 120.0
    assert told["total_energy_source"] == "rapl+model.dimm+nvml.energy"
    assert told["total_emissions"] == 0.5
    assert told["gpu_hardware"] == "H100 (GPU-b)"
    assert told["cpu_hardware"] == "EPYC, 64 threads"


def test_a_run_that_was_resumed_elsewhere_says_where_its_electricity_came_from(
    states: Callable[..., Stated],
) -> None:
    france = {"carbon_intensity": 56.0, "country_iso_code": "FRA"}
    texas = {"carbon_intensity": 411.5, "country_iso_code": "USA", "region": "texas", "pue": 2.5}
    stated = states(measured(30, electricity=france), measured(50, since=8, electricity=texas))
    told = stated.activities[RUN]
    assert told["provml:carbon_intensity"] == "56.0; 411.5"
    assert told["provml:country_iso_code"] == "FRA; USA"
    assert told["provml:region"] == "texas"
    assert told["provml:pue"] == 2.5


def test_what_no_sampler_measured_is_not_stated(states: Callable[..., Stated]) -> None:
    nothing = measured(30, energies={}, sources={}, emissions=None, hardware={})
    assert costs(states(), RUN) == {}
    assert costs(states(nothing), RUN) == {}


def test_a_context_states_its_sums_and_a_killed_run_the_sums_of_its_contexts(
    states: Callable[..., Stated],
) -> None:
    def total(context: str, quantity: str, amount: float, unit: str, source: str) -> Total:
        return Total(quantity=quantity, context=context, amount=amount, unit=unit, source=source)

    stated = states(
        series=[metric("loss", "Training"), metric("loss", "Testing")],
        totals=[
            total("Training", "energy", 50.0, "J", "carbon:rapl"),
            total("Training", "flops_model", 4e12, "FLOP", "flops.meta"),
            total("Testing", "energy", 10.0, "J", "carbon:rapl"),
            total("Testing", "flops_model", 1e12, "FLOP", "flops.real"),
        ],
    )
    assert costs(stated, "context/Testing") == {
        "energy": 10.0,
        "energy_unit": "J",
        "energy_source": "carbon:rapl",
        "flops_model": 1e12,
        "flops_model_unit": "FLOP",
        "flops_model_source": "flops.real",
    }
    assert costs(stated, RUN) == {
        "total_energy": 60.0,
        "total_energy_unit": "J",
        "total_energy_source": "carbon:rapl",
        "total_flops_model": 5e12,
        "total_flops_model_unit": "FLOP",
        "total_flops_model_source": "flops.meta+flops.real",
    }


def test_what_was_logged_after_a_samplers_last_word_is_in_the_runs_total(
    states: Callable[..., Stated],
) -> None:
    def logged(since: int, quantity: str, amount: float, source: str) -> Total:
        return Total(
            quantity=quantity, context="Training", amount=amount, unit="J", source=source,
            rank=0, since=since,
        )  # fmt: skip

    # The first sampler ended with 120 J, of which 50 J were logged. The second was killed: it had
    # said 120 J, and both calls tell the same energy, so 900 J are all that is known of it.
    stated = states(
        measured(30),
        measured(50, since=8),
        series=[metric("loss", "Training")],
        totals=[
            logged(7, "energy", 50.0, "rapl"),
            logged(7, "energy", 50.0, "carbon:rapl"),
            logged(8, "energy", 800.0, "rapl"),
            logged(8, "energy", 900.0, "carbon:rapl"),
            logged(8, "emissions", 2.0, "carbon:rapl"),
        ],
    )
    assert costs(stated, RUN)["total_energy"] == 120.0 + 900.0
    assert costs(stated, RUN)["total_emissions"] == 0.25 + 2.0
    assert costs(stated, "context/Training")["energy"] == 50.0 + 900.0
