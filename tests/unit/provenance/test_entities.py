"""Parameters and data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provml_lightning.domain.records import Dataset, Parameter
from tests.conformance.prov.runs import at

if TYPE_CHECKING:
    from collections.abc import Callable

    States = Callable[..., Any]

RUN = "run/digits_0"
REVISION = {"$": "prov:Revision", "type": "prov:QUALIFIED_NAME"}


def kind(name: str) -> dict[str, str]:
    return {"$": f"provml:{name}", "type": "prov:QUALIFIED_NAME"}


def parameter(seconds: float, value: Any, key: str = "lr", **changes: Any) -> Parameter:
    return Parameter(time=at(seconds), key=key, value=value, **changes)


def test_a_parameter_is_an_entity_that_its_context_used(states: States) -> None:
    stated = states(parameter(1, 0.1, context="Training", source="optuna"))
    assert stated.entities == {
        "param/Training/lr/optuna": {
            "prov:type": kind("HyperParameter"),
            "prov:label": "lr",
            "yprov:context": "Training",
            "yprov:source": "optuna",
            "prov:value": 0.1,
        }
    }
    assert stated.relations("used", "activity", "entity", "time", "role") == [
        (
            "context/Training",
            "param/Training/lr/optuna",
            "2026-01-02T03:04:06.000000+00:00",
            "input",
        )
    ]


def test_an_output_was_generated(states: States) -> None:
    stated = states(parameter(2, 0.9, "score", is_output=True))
    assert stated.relations("wasGeneratedBy", "entity", "activity", "role") == [
        ("param/~~/score", RUN, "output")
    ]
    assert "used" not in stated.document


def test_another_value_is_a_revision_and_the_last_is_marked(states: States) -> None:
    stated = states(parameter(1, 0.1), parameter(2, 0.1), parameter(3, 0.2), parameter(4, 0.1))
    told = [
        (name, one["prov:value"], one["provml:revision"], one["provml:is_last"])
        for name, one in stated.entities.items()
    ]
    assert told == [
        ("param/~~/lr", 0.1, 1, False),
        ("param/~~/lr~2", 0.2, 2, False),
        ("param/~~/lr~3", 0.1, 3, True),
    ]
    assert stated.entities["param/~~/lr~2"]["provml:time"] == {
        "$": "2026-01-02T03:04:08.000000+00:00",
        "type": "xsd:dateTime",
    }
    assert stated.relations("wasDerivedFrom", "generatedEntity", "usedEntity", "type") == [
        ("param/~~/lr~2", "param/~~/lr", REVISION),
        ("param/~~/lr~3", "param/~~/lr~2", REVISION),
    ]


def test_an_input_that_becomes_an_output_is_a_revision(states: States) -> None:
    stated = states(parameter(1, 5, "n"), parameter(2, 5, "n", is_output=True))
    assert stated.relations("used", "entity") == [("param/~~/n",)]
    assert stated.relations("wasGeneratedBy", "entity") == [("param/~~/n~2",)]


def test_what_is_true_of_one_rank_alone_says_so_and_is_no_revision(states: States) -> None:
    stated = states(
        *((rank, parameter(1, rank, "local_rank")) for rank in (0, 1)),
        *((rank, parameter(1, 0.1)) for rank in (0, 1)),
    )
    values = {
        name: (one["prov:value"], one.get("provml:rank")) for name, one in stated.entities.items()
    }
    assert values == {
        "param/~~/local_rank~rank1": (1, 1),
        "param/~~/local_rank": (0, None),
        "param/~~/lr": (0.1, None),
    }
    assert "wasDerivedFrom" not in stated.document


def test_a_data_set_is_used_as_often_as_it_was_told(states: States) -> None:
    facts = {"total_samples": 10, "context": "the user's", "batch size": 2}
    told = [
        Dataset(time=at(seconds), label="train", context="Training", attributes=facts)
        for seconds in (1, 2)
    ]
    stated = states(*told)
    assert stated.entities == {
        "dataset/Training/train": {
            "prov:type": kind("Dataset"),
            "prov:label": "train",
            "yprov:context": "Training",
            "provml:total_samples": 10,
            "provml:batch.20size": 2,
        }
    }
    assert stated.relations("used", "activity", "entity", "time") == [
        ("context/Training", "dataset/Training/train", "2026-01-02T03:04:06.000000+00:00"),
        ("context/Training", "dataset/Training/train", "2026-01-02T03:04:07.000000+00:00"),
    ]


def test_other_data_under_one_label_are_a_data_set_of_their_own(states: States) -> None:
    told = [
        Dataset(time=at(second), label="d", attributes={"total_samples": size})
        for second, size in ((1, 10), (2, 20), (3, 10))
    ]
    stated = states(*told)
    sizes = {key: one["provml:total_samples"] for key, one in stated.entities.items()}
    assert sizes == {"dataset/~~/d": 10, "dataset/~~/d~2": 20}
    assert stated.relations("wasDerivedFrom", "generatedEntity") == []
    used = stated.relations("used", "entity", "time")
    assert sorted((one[0], one[1][17:19]) for one in used) == [
        ("dataset/~~/d", "06"),
        ("dataset/~~/d", "08"),
        ("dataset/~~/d~2", "07"),
    ]
