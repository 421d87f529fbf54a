from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provml_lightning.domain.records import PowerMeasure
from provml_lightning.provenance.statement import state
from tests.conformance.prov.runs import at, contents, ended, opened

if TYPE_CHECKING:
    from collections.abc import Iterable

TOLD = {"data_type": "tabular", "data_shape": "(3, 4)", "algorithm_params": "n=3"}


def measure(second: int, **other: Any) -> PowerMeasure:
    return PowerMeasure(
        time=at(second),
        **{
            "package": "sklearn",
            "algorithm": "forest",
            "step": "training",
            "seconds": 2.0,
            **other,
        },
    )


def stated(*measures: PowerMeasure) -> dict[str, Any]:
    return state(contents(opened(), *measures, ended()))


def parts(document: dict[str, Any], kind: str, prefix: str) -> dict[str, Any]:
    return {name: one for name, one in document[kind].items() if name.startswith(prefix)}


def relations(document: dict[str, Any], kind: str, activities: Iterable[str]) -> list[Any]:
    told = document[kind].values()
    return [one for one in told if one.get("prov:activity") in activities]


def test_a_measure_is_an_activity_that_the_run_informed() -> None:
    document = stated(measure(3, measured={"energy_consumed": 36.5, "pue": 1.58}))
    ((name, activity),) = parts(document, "activity", "measure/").items()
    assert activity["prov:type"]["$"] == "provml:PowerMeasure"
    assert activity["prov:label"] == "sklearn: forest"
    assert activity["prov:startTime"].startswith("2026-01-02T03:04:08")
    assert activity["prov:endTime"].startswith("2026-01-02T03:04:10")
    assert activity["provml:energy_consumed"] == 36.5
    assert activity["provml:pue"] == 1.58
    assert activity["provml:step"] == "training"
    assert {"prov:informed": name, "prov:informant": "run/digits_0"} in list(
        document["wasInformedBy"].values()
    )


def test_it_used_the_algorithm_and_the_data_and_generated_the_energy() -> None:
    document = stated(measure(3, told=TOLD, measured={"energy_consumed": 36.5}))
    names = set(parts(document, "activity", "measure/"))
    used = {one["prov:role"]: one["prov:entity"] for one in relations(document, "used", names)}
    algorithm, data = (document["entity"][used[role]] for role in ("algorithm", "input"))
    assert algorithm["provml:algorithm_params"] == "n=3"
    assert (data["provml:data_type"], data["provml:data_shape"]) == ("tabular", "(3, 4)")
    (made,) = relations(document, "wasGeneratedBy", names)
    energy = document["entity"][made["prov:entity"]]
    assert energy["prov:type"]["$"] == "provml:EnergyUse"
    assert (energy["prov:value"], energy["provml:unit"]) == (36.5, "J")
    assert made["prov:time"].startswith("2026-01-02T03:04:10")


def test_measures_of_one_thing_share_it_and_have_their_own_energies() -> None:
    energy = {"measured": {"energy_consumed": 1.5}}
    document = stated(
        measure(3, told=TOLD, **energy),
        measure(6, told=TOLD, **energy),
        measure(9, told={**TOLD, "algorithm_params": "n=4"}, **energy),
    )
    assert len(parts(document, "activity", "measure/")) == 3
    assert len(parts(document, "entity", "algorithm/")) == 2
    assert len(parts(document, "entity", "data/")) == 1
    assert len(parts(document, "entity", "energy/")) == 3


def test_a_measure_that_measured_nothing_generated_nothing() -> None:
    document = stated(measure(3, error_type="ValueError"))
    ((_, activity),) = parts(document, "activity", "measure/").items()
    assert activity["provml:error_type"] == "ValueError"
    assert parts(document, "entity", "energy/") == {}
