"""What was told several times, by one rank or by several."""

from __future__ import annotations

import math

from provml_lightning.domain.records import Parameter
from provml_lightning.provenance.history import content, histories


def told(*values: tuple[int, object]) -> list[tuple[int | None, list[list[object]]]]:
    """Return rank and values by state of what ranks tell of one parameter, in order."""
    records = [
        (rank, Parameter(time=time, key="p", value=value))  # type: ignore[arg-type]
        for time, (rank, value) in enumerate(values)
    ]
    return [
        (history.rank, [[record.value for record in state] for state in history.states])
        for history in histories(records, lambda record: record.key)
    ]


def test_the_same_told_again_is_one_state() -> None:
    assert told((0, 1), (0, 1)) == [(None, [[1, 1]])]


def test_a_value_that_comes_back_is_a_state_of_its_own() -> None:
    assert told((0, 1), (0, 2), (0, 1)) == [(None, [[1], [2], [1]])]


def test_a_rank_that_tells_the_same_shares_the_history() -> None:
    assert told((0, 1), (0, 2), (1, 1), (1, 2)) == [(None, [[1, 1], [2, 2]])]


def test_a_rank_that_came_less_far_shares_it_too() -> None:
    assert told((1, 1), (0, 1), (0, 2)) == [(None, [[1, 1], [2]])]


def test_a_rank_that_tells_otherwise_has_its_own_and_the_lowest_comes_last() -> None:
    assert told((0, 0), (1, 1), (2, 2)) == [(2, [[2]]), (1, [[1]]), (None, [[0]])]


def test_a_rank_that_went_further_has_its_own() -> None:
    assert told((0, 1), (1, 1), (1, 2)) == [(1, [[1], [2]]), (None, [[1]])]


def test_equal_means_of_the_same_type_and_nan_is_nan() -> None:
    assert told((0, 1), (0, 1.0), (0, True)) == [(None, [[1], [1.0], [True]])]
    assert len(told((0, math.nan), (0, float("nan")))[0][1]) == 1


def test_the_time_is_no_content() -> None:
    one, other = (Parameter(time=time, key="p", value=1) for time in (1, 2))
    assert content(one) == content(other)
