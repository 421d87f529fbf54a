from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from provml_lightning.domain.fields import misfit
from provml_lightning.domain.reading import Writer
from provml_lightning.domain.records import Parameter, Record, Status, StoredFile
from provml_lightning.storage.index import RunIndex


@pytest.mark.parametrize("kind", [*get_args(Record), StoredFile, Writer, RunIndex])
def test_every_field_of_every_record_is_of_a_form_that_can_be_checked(kind: type) -> None:
    assert misfit(kind, {field.name: object() for field in fields(kind)}) == fields(kind)[0].name


@pytest.mark.parametrize("value", [True, 1, 2**80, 0.5, "text", datetime(2024, 1, 1, tzinfo=UTC)])
def test_a_parameter_holds_any_plain_value(value: Any) -> None:
    assert misfit(Parameter, {"time": 1, "key": "p", "value": value, "context": None}) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("time", "1"), ("time", 2**63), ("key", 5), ("value", []), ("source", ["a"]), ("context", 0)],
)
def test_the_first_value_of_another_type_is_named(name: str, value: Any) -> None:
    assert misfit(Parameter, {"time": 1, "key": "p", "value": 1, name: value}) == name


@pytest.mark.parametrize(
    ("name", "value"),
    [("sealed", [1]), ("ranks", ["0"]), ("covers", {"a": 1}), ("files", [5]), ("status", "x")],
)
def test_what_lists_and_mappings_hold_is_checked_too(name: str, value: Any) -> None:
    assert misfit(RunIndex, {"status": Status.COMPLETED, name: value}) == name
