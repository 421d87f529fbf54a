from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from provml_lightning.query.literals import unwrap


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("text", "text"),
        (True, True),
        (3, 3),
        ({"$": "5", "type": "xsd:int"}, 5),
        ({"$": "9007199254740993", "type": "xsd:long"}, 9007199254740993),
        ({"$": 0.5, "type": "xsd:double"}, 0.5),
        ({"$": "-INF", "type": "xsd:double"}, -math.inf),
        ({"$": "false", "type": "xsd:boolean"}, False),
        ({"$": "1", "type": "xsd:boolean"}, True),
        ({"$": "provml:Metric", "type": "prov:QUALIFIED_NAME"}, "provml:Metric"),
        ({"$": "chat", "lang": "fr"}, "chat"),
        ({"$": 7, "type": "xsd:string"}, "7"),
        ({"$": "2026-01-02T03:04:05Z", "type": "xsd:dateTime"}, datetime(2026, 1, 2, 3, 4, 5, 0, UTC)),  # noqa: E501
        ([{"$": "1", "type": "xsd:int"}, "b"], [1, "b"]),
        ({"other": 1}, {"other": 1}),
    ],
)  # fmt: skip
def test_a_literal_becomes_the_value_that_it_states(literal: Any, expected: Any) -> None:
    assert unwrap(literal) == expected
    assert type(unwrap(literal)) is type(expected)


@pytest.mark.parametrize("kind", ["int", "double", "boolean", "dateTime"])
def test_a_value_that_is_not_of_its_type_stays_text(kind: str) -> None:
    assert unwrap({"$": "neither", "type": f"xsd:{kind}"}) == "neither"
