"""Read one metric out of the Parquet file of its context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provml_lightning.errors import SeriesUnavailableError
from provml_lightning.query.frames import from_arrow

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable
    from pathlib import Path

    import pandas as pd

    from provml_lightning.domain.reading import MetricKey

__all__ = ["read_parquet"]

_KEYS = ("metric", "context", "source")
_COLUMNS = ["step", "epoch", "value", "timestamp", "rank"]


def read_parquet(file: Path | io.BytesIO, name: MetricKey, path: str) -> pd.DataFrame:
    """Return the rows of a metric, in the file's order.

    Row groups that hold this metric alone are read without a look at their names: in a long
    series that is all but two of them.

    Raises:
        SeriesUnavailableError: The file is not a metrics file, or has no row of the metric.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as opened:
            pieces = list(_pieces(opened, name))
    except (pa.ArrowException, OSError, LookupError) as error:
        raise SeriesUnavailableError(f"{path} cannot be read as a metrics file: {error}") from error
    if not pieces:
        raise SeriesUnavailableError(
            f"{path} has no row of metric {name.key!r}, context {name.context!r}, source"
            f" {name.source!r}: it is not the file that the document speaks of"
        )
    return from_arrow(pa.concat_tables(pieces))


def _pieces(opened: Any, name: MetricKey) -> Iterable[Any]:
    """Yield the metric's rows, from as few row groups as their statistics allow."""
    places = [opened.schema_arrow.get_field_index(key) for key in _KEYS]
    whole: list[int] = []
    for number in range(opened.metadata.num_row_groups):
        group = opened.metadata.row_group(number)
        answers = [
            _holds(group.column(place), wanted) for place, wanted in zip(places, name, strict=True)
        ]
        if all(answers):
            whole.append(number)
        elif False not in answers:
            yield from _read(opened, whole)
            whole = []
            yield from _filtered(opened, number, name)
    yield from _read(opened, whole)


def _holds(column: Any, wanted: str | None) -> bool | None:
    """Tell whether a column of a row group is ``wanted`` throughout; None: perhaps in part."""
    statistics = column.statistics
    if statistics is None or not statistics.has_null_count:
        return None
    if wanted is None or statistics.null_count == column.num_values:
        nulls = {0: False, column.num_values: True}.get(statistics.null_count)
        return nulls if wanted is None else False
    if not statistics.has_min_max:
        return None
    if not statistics.min <= wanted <= statistics.max:
        return False
    return True if statistics.min == statistics.max and not statistics.null_count else None


def _read(opened: Any, groups: list[int]) -> Iterable[Any]:
    if groups:
        yield opened.read_row_groups(groups, columns=_COLUMNS)


def _filtered(opened: Any, group: int, name: MetricKey) -> Iterable[Any]:
    import functools

    import pyarrow.compute as pc

    table = opened.read_row_group(group, columns=[*_KEYS, *_COLUMNS])
    masks = [
        pc.is_null(table[key]) if wanted is None else pc.equal(table[key], wanted)
        for key, wanted in zip(_KEYS, name, strict=True)
    ]
    rows = table.filter(functools.reduce(pc.and_, masks)).select(_COLUMNS)
    if rows.num_rows:
        yield rows
