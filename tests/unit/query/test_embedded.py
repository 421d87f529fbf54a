from __future__ import annotations

import math

import pytest

from provml_lightning.errors import MalformedDocumentError
from provml_lightning.query.embedded import is_cut, parse


def test_numbers_in_the_text_of_python_and_of_numpy_are_read() -> None:
    assert parse("[0, 1.5, -2e-3]", "m") == [0, 1.5, -0.002]
    assert parse("[4.163646 , 4.11   ,\n 4.0703306]", "m") == [4.163646, 4.11, 4.0703306]
    assert parse("[0. 1. 2.]", "m") == [0.0, 1.0, 2.0]
    assert parse("[]", "m") == []
    assert parse("[1722514379399]", "m") == [1722514379399]


def test_values_that_are_no_numbers_are_kept() -> None:
    nan, infinite, negative, nothing = parse("[nan, inf, -inf, None]", "m")
    assert math.isnan(nan or 0)
    assert (infinite, negative, nothing) == (math.inf, -math.inf, None)


@pytest.mark.parametrize("text", ["", "1, 2", "[1, two]", "[[1], [2]]", "[__import__('os')]"])
def test_what_is_no_list_of_numbers_is_refused(text: str) -> None:
    with pytest.raises(MalformedDocumentError, match="metric 'm'"):
        parse(text, "m")


def test_a_list_whose_middle_was_left_out_is_recognised() -> None:
    assert is_cut("[0.16364636, 0.12887536, 0.11182671, ..., 0.06557503]")
    assert not is_cut("[0.16364636, 0.12887536]")
