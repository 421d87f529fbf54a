from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from provml_lightning.errors import QueryError, RecordNotFoundError
from provml_lightning.query import (
    get_parameter,
    list_activities,
    list_entities,
    list_parameters,
)


def test_activities_that_differ_little_are_different(embedded: dict[str, Any]) -> None:
    assert list_activities(embedded) == ["exp_execution", "epoch_0", "epoch_0.0"]


def test_an_identifier_is_listed_once_however_many_records_it_has(typed: dict[str, Any]) -> None:
    assert list_entities(typed) == [
        "lr//TRAINING",
        "optimizer//exp_GR0_0",
        "input//exp_GR0_0",
        "final.pt//exp_GR0_0",
        "loss//TRAINING",
        "val_loss//TRAINING",
        "loss//VALIDATION",
        "psutil//cpu//TRAINING",
    ]


def test_a_type_is_understood_in_every_spelling(
    embedded: dict[str, Any], untyped: dict[str, Any], typed: dict[str, Any], own: dict[str, Any]
) -> None:
    for asked in ("provml:Metric", "prov-ml:Metric", "Metric"):
        assert list_entities(embedded, asked) == ["loss_Context.TRAINING", "acc_Context.TRAINING"]
        assert list_entities(untyped, asked) == ["MSE"]
        assert len(list_entities(typed, asked)) == 4
        assert len(list_entities(own, asked)) == 5
    assert list_entities(embedded, "provml:HyperParameter") == ["total_params"]
    assert list_entities(typed, "provml:Model") == ["final.pt//exp_GR0_0"]
    assert list_entities(typed, "provml:Mod") == []
    assert list_entities(typed, "other:Model") == []


def test_entities_of_bundles_are_listed_too() -> None:
    assert list_entities({"bundle": {"b": {"entity": {"inner": {}}}}}) == ["inner"]


@pytest.mark.parametrize("name", ["train_dataset"])
@pytest.mark.parametrize("unwrap", [True, False])
def test_a_typed_literal_is_unwrapped_on_request(
    name: str, unwrap: bool, untyped: dict[str, Any]
) -> None:
    expected = 16 if unwrap else {"$": 16, "type": "xsd:int"}
    assert get_parameter(untyped, name, "batch_size", unwrap=unwrap) == expected


@pytest.mark.parametrize(
    ("name", "param", "expected"),
    [
        ("run/digits_0", "provml:started", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("digits_0", "started", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("run/digits_0", "prov:type", ["prov:Activity", "provml:RunExecution"]),
        ("seed", "value", 4294967296),
        ("digits_0", "seed", 4294967296),
        ("Training", "lr", 0.01),
        ("Context.TRAINING", "lr", 0.01),
        ("Validation", "lr", 0.5),
        ("my/own", "depth", 3),
        ("context/my%2fown", "depth", 3),
        ("param/Training/lr", "prov:value", 0.1),
        ("depth", "value", 3),
    ],
)
def test_a_parameter_of_ours_is_found_by_identifier_label_and_context(
    name: str, param: str, expected: Any, own: dict[str, Any]
) -> None:
    assert get_parameter(own, name, param) == expected


@pytest.mark.parametrize(
    ("name", "param", "expected"),
    [
        ("TRAINING", "lr", "0.001"),
        ("Training", "lr", "0.001"),
        ("exp_GR0_0", "optimizer", "Adam"),
        ("exp_GR0_0", "run_id", "0"),
        ("optimizer", "value", "Adam"),
        ("input", "value", "9"),
        ("final.pt", "final_total_params", 10),
    ],
)
def test_a_parameter_of_the_third_generation_is_found(
    name: str, param: str, expected: Any, typed: dict[str, Any]
) -> None:
    assert get_parameter(typed, name, param) == expected


def test_a_record_that_shares_an_identifier_is_asked_too(embedded: dict[str, Any]) -> None:
    assert get_parameter(embedded, "exp", "run_id") == "3"
    assert get_parameter(embedded, "exp", "experiment_name") == "exp"
    assert get_parameter(embedded, "total_params", "value") == "7850"


def test_a_label_with_different_values_in_two_contexts_is_not_guessed(own: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match="'param/Training/lr/2', 'param/Validation/lr'"):
        get_parameter(own, "lr", "value")


def test_a_name_that_is_not_there_is_told_with_the_closest(own: dict[str, Any]) -> None:
    with pytest.raises(RecordNotFoundError, match="'digits_0'"):
        get_parameter(own, "digit_0", "started")
    with pytest.raises(RecordNotFoundError, match="'lr'"):
        get_parameter(own, "Training", "lrr")
    with pytest.raises(RecordNotFoundError, match="'seed'"):
        get_parameter(own, "digits_0", "Seed")


def test_a_parameter_of_another_owner_is_told_to_be_that_ones(own: dict[str, Any]) -> None:
    with pytest.raises(RecordNotFoundError, match=r"lr is a parameter of 'Training', 'Validation'"):
        get_parameter(own, "digits_0", "lr")
    with pytest.raises(RecordNotFoundError, match=r"seed is a parameter of the run itself"):
        get_parameter(own, "Training", "seed")


def test_parameters_of_one_name_are_its_attributes(typed: dict[str, Any]) -> None:
    assert list_parameters(typed, "final.pt//exp_GR0_0") == {
        "prov:type": "provml:Model",
        "prov:label": "final.pt",
        "yprov:final_total_params": 10,
    }
    raw = list_parameters(typed, "final.pt", unwrap=False)
    assert raw["yprov:final_total_params"] == {"$": "10", "type": "xsd:int"}


def test_parameters_of_a_context_and_of_a_run_are_by_label(typed: dict[str, Any]) -> None:
    assert list_parameters(typed, "Training") == {"lr": "0.001"}
    assert list_parameters(typed, "exp_GR0_0") == {
        "optimizer": "Adam",
        "input": ["1", "4", "9"],
        "yprov:experiment_dir": "prov/exp_0",
        "yprov:run_id": "0",
    }


def test_all_parameters_of_the_third_generation(typed: dict[str, Any]) -> None:
    assert list_parameters(typed) == {
        "lr": "0.001",
        "optimizer": "Adam",
        "input": ["1", "4", "9"],
        "yprov:experiment_dir": "prov/exp_0",
        "yprov:run_id": "0",
        "prov:type": "provml:Model",
        "prov:label": "final.pt",
        "yprov:final_total_params": 10,
    }


def test_all_parameters_of_ours_name_the_context_where_labels_repeat(own: dict[str, Any]) -> None:
    assert list_parameters(own) == {
        "seed": 4294967296,
        "Training/lr": [0.1, 0.01],
        "Validation/lr": 0.5,
        "depth": 3,
        "prov:type": ["prov:Activity", "provml:RunExecution"],
        "run/digits_0/prov:label": "digits_0",
        "provml:started": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "context/Training/prov:label": "Training",
        "context/my%2fown/prov:label": "my/own",
    }


def test_all_parameters_of_the_untyped_generation(untyped: dict[str, Any]) -> None:
    told = list_parameters(untyped)
    assert told["optimizer"] == "Adam"
    assert told["batch_size"] == 16
    assert told["yProv4ML:level"] == 1


def test_an_attribute_called_as_a_parameter_is_kept_beside_it(typed: dict[str, Any]) -> None:
    typed["activity"]["TRAINING"]["lr"] = "attribute"
    told = list_parameters(typed)
    assert (told["lr"], told["TRAINING/lr"]) == ("0.001", "attribute")
