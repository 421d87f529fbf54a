from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.storage import sorting
from provml_lightning.storage.point_log import MARK, RECORD
from provml_lightning.storage.sorting import count_points, read_number, sorted_points

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pytest


def _write(path: Path, numbers: Iterable[int], mark: int = MARK) -> None:
    with path.open("ab") as file:
        for position, number in enumerate(numbers):
            file.write(RECORD.pack(position, position, 0, float(position), number, mark))


def _sorted(*paths: Path, rows: int = 100) -> list[dict[int, list[float]]]:
    with sorted_points([(path, [70_000, 3, 2, 1]) for path in paths], None) as logs:
        return [
            {
                number: [
                    v for _, part in log.read([number], rows, 1) for v in part["value"].tolist()
                ]
                for number in log.counts
            }
            for log in logs
        ]


def test_each_series_keeps_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "_CHUNK", 3)
    _write(tmp_path / "a", [2, 1, 2, 70_000, 1, 2, 2])
    expected = {1: [1.0, 4.0], 2: [0.0, 2.0, 5.0, 6.0], 70_000: [3.0]}
    assert _sorted(tmp_path / "a") == [expected]
    assert _sorted(tmp_path / "a", rows=1) == [expected]


def test_logs_share_one_file_and_keep_apart(tmp_path: Path) -> None:
    _write(tmp_path / "a", [1, 2, 1])
    _write(tmp_path / "b", [2, 1])
    (tmp_path / "c").touch()
    assert _sorted(tmp_path / "a", tmp_path / "b", tmp_path / "c") == [
        {1: [0.0, 2.0], 2: [1.0]},
        {2: [0.0], 1: [1.0]},
        {},
    ]


def test_series_lie_as_they_are_asked_for_and_short_neighbours_are_read_together(
    tmp_path: Path,
) -> None:
    _write(tmp_path / "a", [1, 2, 3, 3, 2, 3, 4, 5])
    with sorted_points([(tmp_path / "a", [5, 3, 6, 1, 2])], None) as (log,):
        read = [(parts, part["value"].tolist()) for parts, part in log.read({1, 2, 3, 4, 5}, 2, 3)]
        apart = [(parts, part["value"].tolist()) for parts, part in log.read({5, 1}, 2, 3)]
    assert read == [
        ([(5, 1), (3, 2)], [7.0, 2.0, 3.0]),
        ([(3, 1), (1, 1)], [5.0, 0.0]),
        ([(2, 2)], [1.0, 4.0]),
    ]
    assert apart == [([(5, 1)], [7.0]), ([(1, 1)], [0.0])]
    assert log.counts == {1: 1, 2: 2, 3: 3, 4: 1, 5: 1}


def test_records_without_a_mark_or_a_number_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a"
    _write(path, [1, 0, 1])
    _write(path, [1, 2], mark=0)
    with path.open("ab") as file:
        file.write(b"torn")
    assert _sorted(path) == [{1: [0.0, 2.0]}]
    assert count_points(path) == 2
    assert [v for part in read_number(path, 1) for v in part["value"].tolist()] == [0.0, 2.0]
    assert count_points(tmp_path / "not there") == 0


def test_what_is_logged_while_it_sorts_is_left_for_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    _write(path, [1, 2, 1])
    counts = sorting._counts  # noqa: SLF001  the moment between the two readings

    def count_then_log(path: Path) -> dict[int, int]:
        found = counts(path)
        _write(path, [1, 3, 2])
        return found

    monkeypatch.setattr(sorting, "_counts", count_then_log)
    assert _sorted(path) == [{1: [0.0, 2.0], 2: [1.0]}]
