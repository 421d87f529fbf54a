"""Any value as one that a document can hold."""

from __future__ import annotations

import dataclasses
import functools
import math
from argparse import Namespace
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pytest

from provml_lightning.domain.values import LONGEST_TEXT, flatten, to_plain


class Colour(Enum):
    RED = "red"


class Plain:
    """An object without a repr of its own."""


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@dataclasses.dataclass
class Settings:
    rate: float
    sizes: list[int]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (True, True),
        (3, 3),
        (2**70, 2**70),
        (0.1, 0.1),
        ("text", "text"),
        (None, "None"),
        (Colour.RED, "red"),
        (Decimal("0.10"), "0.10"),
        (Fraction(1, 4), 0.25),
        (PurePosixPath("a/b"), "a/b"),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array(2.5), 2.5),
        ([1, "a"], "[1, 'a']"),
        (Settings(0.1, [1]), "Settings(rate=0.1, sizes=[1])"),
        (math.sqrt, "math.sqrt"),
        (dict, "dict"),
    ],
)
def test_a_value_keeps_its_type_or_becomes_faithful_text(value: Any, plain: Any) -> None:
    kept = to_plain(value)
    assert kept == plain
    assert type(kept) is type(plain)


def test_a_time_with_a_zone_stays_a_time() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert to_plain(moment) == moment
    assert to_plain(moment.replace(tzinfo=None)) == "2026-01-02T03:04:05"


def test_nan_and_infinity_are_numbers() -> None:
    assert math.isnan(float(to_plain(math.nan)))  # type: ignore[arg-type]
    assert to_plain(-math.inf) == -math.inf


def test_addresses_in_memory_are_left_out() -> None:
    assert to_plain(Plain()) == f"<{__name__}.Plain object>"
    assert to_plain(functools.partial(to_plain, 1)).endswith("to_plain>, 1)")  # type: ignore[union-attr]


def test_a_function_is_its_name() -> None:
    assert to_plain(flatten) == "provml_lightning.domain.values.flatten"
    assert to_plain(Settings) == f"{__name__}.Settings"


def test_an_array_that_repr_cuts_tells_its_shape() -> None:
    text = str(to_plain(np.arange(5000).reshape(50, 100)))
    assert text.endswith("shape (50, 100), dtype int64")
    assert to_plain(np.array([1.0, 2.0])) == "array([1., 2.])"


def test_text_is_bounded_and_says_what_is_left_out() -> None:
    text = str(to_plain("x" * 100_000))
    assert len(text) <= LONGEST_TEXT
    assert "characters left out" in text


def test_an_integer_too_long_for_decimals_is_kept_as_hexadecimal_text() -> None:
    assert to_plain(1 << 20_000) == "0x1" + "0" * 5000


def test_what_cannot_be_printed_says_so() -> None:
    assert to_plain(Unprintable()) == (f"<{__name__}.Unprintable, its repr raised RuntimeError>")


def test_an_object_whose_attributes_cannot_be_asked_for_is_its_text() -> None:
    class Unbound:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(f"{name}: no context")

        def __repr__(self) -> str:
            return "<unbound>"

    assert to_plain(Unbound()) == "<unbound>"


def test_nested_settings_become_flat_names() -> None:
    nested = {"model": {"depth": 2, "act": Namespace(name="relu")}, "opt": Settings(0.1, [1])}
    assert flatten(nested) == {
        "model/depth": 2,
        "model/act/name": "relu",
        "opt/rate": 0.1,
        "opt/sizes": [1],
    }


def test_something_that_contains_itself_ends() -> None:
    loop: dict[str, Any] = {"a": 1}
    loop["self"] = loop
    assert flatten(loop) == {"a": 1, "self": loop}


def test_nothing_is_flat_already() -> None:
    assert flatten({}) == {}
    assert flatten({"empty": {}}) == {"empty": {}}
