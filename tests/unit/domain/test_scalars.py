from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from provml_lightning.domain.scalars import to_step, to_time_ns, to_value
from provml_lightning.errors import RecordError


class OneElement:
    """Answers as a tensor of one element does: only ``item`` gives its number."""

    def __init__(self, item: Any) -> None:
        self._item = item

    def item(self) -> Any:
        return self._item


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1.5, 1.5),
        (3, 3.0),
        (True, 1.0),
        (Decimal("0.25"), 0.25),
        (Fraction(1, 4), 0.25),
        (np.float32(0.5), 0.5),
        (np.int8(-3), -3.0),
        (np.bool_(True), 1.0),
        (np.array(2.5), 2.5),
        (np.array([[2.5]]), 2.5),
        (OneElement(0.75), 0.75),
        (math.inf, math.inf),
        (np.float64("-inf"), -math.inf),
    ],
)
def test_one_number_of_any_kind_is_a_value(given: Any, expected: float) -> None:
    value = to_value("loss", given)
    assert value == expected
    assert type(value) is float


@pytest.mark.parametrize("given", [math.nan, Decimal("NaN"), np.float16("nan")])
def test_nan_is_kept(given: Any) -> None:
    assert math.isnan(to_value("loss", given))


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("0.5", "str"),
        (b"1", "bytes"),
        (None, "NoneType"),
        ([1.0], "list"),
        ({"a": 1}, "dict"),
        (1j, "complex"),
        (np.complex64(1), "numpy.complex64"),
        (np.zeros((2, 3)), r"numpy.ndarray of shape \(2, 3\)"),
        (np.datetime64("2024-01-01"), "numpy.datetime64"),
        (10**400, "int"),
        (OneElement("text"), "OneElement"),
        (object(), "object"),
    ],
)
def test_anything_else_is_refused_with_the_name_the_type_and_the_remedy(
    given: Any, kind: str
) -> None:
    with pytest.raises(RecordError, match=rf"metric 'my loss': a .*{kind}.*one number.*log_param"):
        to_value("my loss", given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (7, 7),
        (-1, -1),
        (np.int64(7), 7),
        (7.0, 7),
        (np.array(7), 7),
        (None, None),
        (2**63 - 1,) * 2,
    ],
)
def test_a_whole_number_of_any_kind_is_a_step(given: Any, expected: int | None) -> None:
    assert to_step("loss", given) == expected


@pytest.mark.parametrize("given", [0.5, math.nan, math.inf, 2**63, -(2**63), "1", [1]])
def test_what_is_no_whole_number_of_64_bits_is_no_step(given: Any) -> None:
    with pytest.raises(RecordError, match="metric 'loss'"):
        to_step("loss", given)


@pytest.mark.parametrize(
    "given",
    [
        1_704_067_200_000,
        1_704_067_200.0,
        datetime(2024, 1, 1, tzinfo=UTC),
        datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
    ],
)
def test_a_time_is_told_in_milliseconds_seconds_or_with_a_zone(given: Any) -> None:
    assert to_time_ns("loss", given) == 1_704_067_200_000_000_000


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (1_704_067_200, "looks like seconds"),
        (datetime(2024, 1, 1), "add tzinfo=UTC"),  # noqa: DTZ001  that is the point
        ("2024", "milliseconds since 1970"),
        (math.nan, "out of range"),
        (1_704_067_200_000_000_000, "out of range"),
        (1e300, "out of range"),
        (-1e10, "out of range"),
    ],
)
def test_a_time_that_was_meant_otherwise_is_refused_with_the_remedy(
    given: Any, remedy: str
) -> None:
    with pytest.raises(RecordError, match=remedy):
        to_time_ns("loss", given)


def test_a_number_too_long_for_decimals_is_refused_like_any_other() -> None:
    with pytest.raises(RecordError, match="step of 16610 bits does not fit"):
        to_step("loss", 10**5000)
    with pytest.raises(RecordError, match="timestamp of 16610 bits is out of range"):
        to_time_ns("loss", 10**5000)
