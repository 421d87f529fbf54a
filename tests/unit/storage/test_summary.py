from __future__ import annotations

import math

import numpy as np
import pytest

from provml_lightning.domain.reading import MetricKey, MetricSeries
from provml_lightning.storage.formats.base import Block
from provml_lightning.storage.point_log import ABSENT
from provml_lightning.storage.summary import Summary

NAME = MetricKey("loss", "Training", None)


def _block(times: list[int], values: list[float], rank: int = 0, segment: int = 1) -> Block:
    steps = np.array([ABSENT if time < 0 else time for time in times])
    return Block(NAME, None, rank, segment, np.array(times), steps, steps, np.array(values))


def _series(*blocks: Block) -> MetricSeries:
    summary = Summary()
    assert list(summary.watch(blocks)) == list(blocks)
    (series,) = summary.series("metrics/Training.parquet")
    return series


def test_a_metric_in_short() -> None:
    series = _series(_block([1, 2, 3], [0.5, math.nan, -1.0]), _block([4], [math.inf]))
    assert (series.rows, series.first, series.last) == (4, 0.5, math.inf)
    assert (series.minimum, series.maximum) == (-1.0, math.inf)
    assert (series.first_step, series.last_step, series.first_time, series.last_time) == (
        1,
        4,
        1,
        4,
    )


def test_a_metric_of_nan_alone_has_no_least_value() -> None:
    series = _series(_block([1], [math.nan]), _block([2], [math.nan]))
    assert (series.minimum, series.maximum) == (None, None)
    assert math.isnan(series.last)


def test_a_clock_that_was_set_back_does_not_change_what_came_first_and_last() -> None:
    series = _series(_block([100, 101], [1.0, 2.0]), _block([50, 51], [3.0, 4.0]))
    assert (series.first, series.last) == (1.0, 4.0)
    assert (series.first_time, series.last_time) == (50, 101)


def test_between_writers_the_time_says_who_was_first_and_last() -> None:
    late = _block([10, 20], [1.0, 2.0], rank=0)
    early = _block([5, 15], [3.0, 4.0], rank=1)
    series = _series(late, early)
    assert (series.first, series.last) == (3.0, 2.0)
    series = _series(_block([1], [1.0], segment=1), _block([2], [2.0], segment=2))
    assert (series.first, series.last) == (1.0, 2.0)


def test_a_writer_whose_later_values_are_earlier_than_anothers_is_not_last() -> None:
    series = _series(
        _block([100], [1.0], rank=0), _block([200], [2.0], rank=1), _block([50], [3.0], rank=1)
    )
    assert series.last == 1.0


def test_metrics_that_are_looked_at_together_keep_apart() -> None:
    long = 12_000
    blocks = [
        _block([1, 2], [5.0, 7.0])._replace(name=MetricKey("a", None, None), unit="J"),
        _block([3], [-math.inf])._replace(name=MetricKey("b", None, None)),
        _block([4], [9.0], rank=1)._replace(name=MetricKey("b", None, None), unit="W"),
        _block(list(range(long)), [0.5] * long)._replace(name=MetricKey("c", None, None)),
        _block([8], [math.nan])._replace(name=MetricKey("d", None, None)),
    ]
    summary = Summary()
    assert list(summary.watch(blocks)) == blocks
    short = [
        (one.name.key, one.unit, one.rows, one.first, one.last_step, one.minimum, one.maximum)
        for one in summary.series(None)
    ]
    assert short == [
        ("a", "J", 2, 5.0, 2, 5.0, 7.0),
        ("b", "W", 2, -math.inf, 4, -math.inf, 9.0),
        ("c", None, long, 0.5, long - 1, 0.5, 0.5),
        ("d", None, 1, pytest.approx(math.nan, nan_ok=True), 8, None, None),
    ]


def test_an_absent_step_is_none() -> None:
    series = _series(_block([-1], [1.0]))
    assert (series.first_step, series.last_step) == (None, None)
