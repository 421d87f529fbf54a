from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from provml_lightning.cli.amounts import bytes_of, count, duration, moment, number, plural


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (999_999, "1 MB"),
        (13_821, "13.8 kB"),
        (2_500_000_000, "2.5 GB"),
        (10**19, "1e+04 PB"),
        (None, "–"),
    ],
)
def test_sizes_have_three_digits(size: int | None, text: str) -> None:
    assert bytes_of(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.1211, "0.121 s"),
        (43.3454, "43.3 s"),
        (59.97, "60 s"),
        (183.2, "3 min 3 s"),
        (3 * 3600 + 125, "3 h 2 min"),
        (2 * 86400 + 3600, "2 d 1 h"),
        (None, "–"),
    ],
)
def test_spans_have_two_units(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_times_are_in_utc_where_a_zone_is_known() -> None:
    east = timezone(timedelta(hours=2))
    assert moment(datetime(2026, 1, 2, 3, 4, 5, tzinfo=east)) == "2026-01-02 01:04:05 UTC"
    assert moment(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "2026-01-02 03:04:05 UTC"
    assert moment(datetime(2026, 1, 2, 3, 4, 5)) == "2026-01-02 03:04:05"  # noqa: DTZ001


def test_numbers_have_six_digits() -> None:
    assert [number(one) for one in (1.0, 0.1234567, 1e300, float("nan"), None)] == [
        "1", "0.123457", "1e+300", "nan", "–",
    ]  # fmt: skip
    assert (count(1234567), count(None)) == ("1 234 567", "–")
    assert (plural(1, "fact"), plural(0, "fact")) == ("1 fact", "0 facts")
