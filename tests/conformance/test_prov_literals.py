"""PROV-JSON (W3C member submission of 24 April 2013), typed literals: a value keeps its type."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from provml_lightning.domain.records import Parameter
from tests.conformance.prov.reading import parse, stated
from tests.conformance.prov.runs import at, contents, opened, rich


def entities(*records: Parameter) -> dict[str, Any]:
    """Return the entities of a run as any JSON reader gets them."""
    run = contents(opened(), *records) if records else rich()
    found: dict[str, Any] = json.loads(stated(run))["entity"]
    return found


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1, 1),
        (-(2**31), -2147483648),
        (2**31, {"$": "2147483648", "type": "xsd:long"}),
        (-(2**63), {"$": "-9223372036854775808", "type": "xsd:long"}),
        (2**63, {"$": "9223372036854775808", "type": "xsd:integer"}),
        (0.1, 0.1),
        (1.0, {"$": "1.0", "type": "xsd:double"}),
        (1e300, {"$": "1e+300", "type": "xsd:double"}),
        (-0.0, {"$": "-0.0", "type": "xsd:double"}),
        (math.nan, {"$": "NaN", "type": "xsd:double"}),
        (math.inf, {"$": "INF", "type": "xsd:double"}),
        (-math.inf, {"$": "-INF", "type": "xsd:double"}),
        (True, True),
        ("1", "1"),
        ("", ""),
        (
            datetime(2020, 2, 29, 12, tzinfo=UTC),
            {"$": "2020-02-29T12:00:00+00:00", "type": "xsd:dateTime"},
        ),
        (
            datetime(2020, 2, 29, 12, tzinfo=timezone(timedelta(hours=5, minutes=30))),
            {"$": "2020-02-29T12:00:00+05:30", "type": "xsd:dateTime"},
        ),
        (  # XML Schema knows neither seconds in an offset nor more than 14 hours
            datetime(1900, 1, 1, tzinfo=timezone(timedelta(minutes=19, seconds=32))),
            {"$": "1899-12-31T23:40:28+00:00", "type": "xsd:dateTime"},
        ),
        (
            datetime(2020, 1, 2, tzinfo=timezone(timedelta(hours=15))),
            {"$": "2020-01-01T09:00:00+00:00", "type": "xsd:dateTime"},
        ),
    ],
)
def test_a_value_keeps_its_type_in_every_json_reader(value: Any, written: Any) -> None:
    told = entities(Parameter(time=at(1), key="p", value=value))["param/~~/p"]["prov:value"]
    assert told == written
    assert type(told) is type(written)


@pytest.mark.parametrize(
    "value", [1, 1.0, 0.1, True, False, "1", "", math.inf, datetime(2020, 2, 29, tzinfo=UTC)]
)
def test_prov_reads_the_value_that_was_told(value: Any) -> None:
    read = _value_read(value)
    assert read == value
    assert type(read) is type(value)


def test_prov_reads_nan_as_a_double() -> None:
    read = _value_read(math.nan)
    assert isinstance(read, float)
    assert math.isnan(read)


def test_prov_reads_a_long_as_a_long() -> None:
    read = _value_read(2**31)
    assert read == 2**31


def test_a_lone_surrogate_of_a_file_name_is_spelled_out() -> None:
    found = entities(Parameter(time=at(1), key="data\udce9", value="\udce9"))
    told = found["param/~~/data%ed%b3%a9"]
    assert (told["prov:label"], told["prov:value"]) == ("data\\udce9", "\\udce9")


def test_types_are_qualified_names() -> None:
    told = entities()["version/Training/net/1"]["prov:type"]
    assert told == [
        {"$": "provml:Model", "type": "prov:QUALIFIED_NAME"},
        {"$": "provml:ModelVersion", "type": "prov:QUALIFIED_NAME"},
    ]


def _value_read(value: Any) -> Any:
    run = contents(opened(), Parameter(time=at(1), key="p", value=value))
    (record,) = parse(stated(run)).get_record("param/~~/p")
    (read,) = record.get_attribute("prov:value")
    return read
