from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provml_lightning.domain.reading import MetricKey
from provml_lightning.errors import SeriesUnavailableError
from provml_lightning.query.tables import read_parquet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Sorted as metrics files are: by metric, source (none first), rank; name, source, value.
ROWS = [
    ("a", None, 1.0),
    ("b", None, 2.0),
    ("b", None, 3.0),
    ("b", None, 4.0),
    ("b", "s", 5.0),
    ("b", "t", 6.0),
    ("ba", None, 7.0),
    ("é", "s", 8.0),
]


SERIES = {
    MetricKey("a", "T", None): [1.0],
    MetricKey("b", "T", None): [2.0, 3.0, 4.0],
    MetricKey("b", "T", "s"): [5.0],
    MetricKey("b", "T", "t"): [6.0],
    MetricKey("ba", "T", None): [7.0],
    MetricKey("é", "T", "s"): [8.0],
}


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("group", [1, 2, 3, 4, 100])
@pytest.mark.parametrize("key", SERIES)
def test_a_metric_is_whole_wherever_row_groups_end(
    key: MetricKey,
    group: int,
    statistics: bool,
    tmp_path: Path,
    write_metrics: Callable[..., None],
) -> None:
    rows = [(name, "T", source, 0, 0, value, 0, 0) for name, source, value in ROWS]
    file = tmp_path / "T.parquet"
    write_metrics(file, rows, row_group_size=group, write_statistics=statistics)
    assert read_parquet(file, key, file.name)["value"].tolist() == SERIES[key]


def test_a_file_without_the_metric_is_not_the_right_file(
    tmp_path: Path, write_metrics: Callable[..., None]
) -> None:
    write_metrics(tmp_path / "T.parquet", [("a", "T", None, 0, 0, 1.0, 0, 0)])
    for key in (MetricKey("b", "T", None), MetricKey("a", "V", None), MetricKey("a", "T", "s")):
        with pytest.raises(SeriesUnavailableError, match="has no row of metric"):
            read_parquet(tmp_path / "T.parquet", key, "T.parquet")


def test_a_damaged_file_is_told_by_name(tmp_path: Path) -> None:
    (tmp_path / "T.parquet").write_bytes(b"PAR1 and no footer")
    with pytest.raises(SeriesUnavailableError, match=r"T\.parquet cannot be read"):
        read_parquet(tmp_path / "T.parquet", MetricKey("a", "T", None), "T.parquet")
