from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provml_lightning.samplers.base import About, Accumulated, Constant, Counter, Integral

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SECOND = 1_000_000_000


def reader(values: Iterable[float]) -> Callable[[], float]:
    left = iter(values)
    return lambda: next(left)


def test_a_counter_begins_at_zero_whatever_it_shows() -> None:
    counter = Counter(reader([34_000_000, 34_000_044]), 1)
    assert [counter.total(0), counter.total(0)] == [0, 44]


def test_a_counter_that_wraps_loses_nothing() -> None:
    # 5 before the wrap at 100, 7 after it.
    counter = Counter(reader([95, 7]), 1000, modulus=100)
    assert [counter.total(0), counter.total(0)] == [0, 12_000]


def test_a_counter_that_was_reset_goes_on_from_there_and_never_back() -> None:
    counter = Counter(reader([1000, 1500, 20, 50]), 1)
    assert [counter.total(0) for _ in range(4)] == [0, 500, 500, 530]


def test_a_constant_power_is_its_time_times_itself() -> None:
    assert [Constant(2.5).total(7)] == [0]
    constant = Constant(2.5)
    constant.total(SECOND)
    assert constant.total(5 * SECOND) == 10 * SECOND  # 10 J in nanojoules


def test_power_is_integrated_by_trapezoids() -> None:
    # 100 W rising to 300 W over 2 s: 400 J; then falling to 0 W over 1 s: 150 J.
    integral = Integral(reader([100.0, 300.0, 0.0]))
    assert integral.total(0) == 0
    assert integral.total(2 * SECOND) == 400 * SECOND
    assert integral.total(3 * SECOND) == 550 * SECOND


def test_a_sum_that_fails_for_one_meter_catches_up_for_all() -> None:
    def failing() -> float:
        value = next(second)
        if value < 0:
            raise OSError("gone for a moment")
        return value

    second = iter([0.0, -1.0, 30.0])
    channel = Accumulated(
        "x", About("J", "test"), [Counter(reader([0, 10, 20]), 1), Counter(failing, 1)]
    )

    channel.advance(1)
    with pytest.raises(OSError, match="gone"):
        channel.advance(2)
    assert channel.total == (1, 0)
    channel.advance(3)
    assert channel.total == (3, 50)


@given(
    modulus=st.integers(2, 2**40),
    start=st.integers(0, 2**64),
    data=st.data(),
)
def test_deltas_of_a_counter_modulo_anything_add_up_to_the_truth(
    modulus: int, start: int, data: st.DataObject
) -> None:
    increments = data.draw(st.lists(st.integers(0, modulus - 1), max_size=30))
    truth = start
    shown = [truth % modulus]
    for increment in increments:
        truth += increment
        shown.append(truth % modulus)

    counter = Counter(reader(shown), 1, modulus)
    totals = [counter.total(0) for _ in shown]

    assert totals[-1] == sum(increments)
    assert all(later >= earlier for earlier, later in pairwise(totals))


def test_what_is_dear_is_read_at_its_pace_and_loses_nothing() -> None:
    channel = Accumulated("x", About("B", "test"), [Counter(reader([0, 30, 50]), 1)], pace=2)
    told = []
    for now in range(5):
        channel.advance(now)
        told.append(channel.total)
    assert told == [(0, 0), (0, 0), (2, 30), (2, 30), (4, 50)]
