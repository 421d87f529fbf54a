"""Many runs side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.reading import MetricKey
from provml_lightning.errors import ProvMLError
from provml_lightning.query.documents import load
from provml_lightning.query.heads import RunHead, read_head
from provml_lightning.query.matching import not_found
from provml_lightning.query.metrics import metrics_of
from provml_lightning.query.projects import list_runs_in_proj
from provml_lightning.query.summaries import summaries_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

__all__ = ["RunRow", "columns_of", "compare_runs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run of a project.

    Attributes:
        path: Its folder, from the project's.
        head: What it is called and how it stands; None where it cannot be read.
        last: The last value of each metric that was asked for.
        fault: Why something of it is not here.
    """

    path: str
    head: RunHead | None
    last: Mapping[MetricKey, float | None]
    fault: str | None = None


_SORTS: dict[str, Callable[[RunHead], Any]] = {
    "status": lambda head: head.status,
    # A time without a zone is compared as if it were UTC: nothing says better.
    "started": lambda head: head.started.isoformat() if head.started else None,
    "duration": lambda head: head.duration,
}


def compare_runs(
    project: str | Path,
    metrics: Sequence[str] = (),
    *,
    sort: str = "run",
    reverse: bool = False,
) -> list[RunRow]:
    """Return one row for each run below a folder; a run that cannot be read is a row that says so.

    Args:
        project: The folder.
        metrics: Names of metrics. Documents are read only if there are any.
        sort: ``"run"`` (by path, ``a_2`` before ``a_10``), ``"status"``, ``"started"``,
            ``"duration"``, or a metric's name. What a run does not have comes last.
        reverse: Greatest first.

    Raises:
        RecordNotFoundError: There is no such folder, or no run has such a metric.
    """
    folder = Path(project)
    wanted = list(metrics)
    if sort != "run" and sort not in _SORTS and sort not in wanted:
        wanted.append(sort)
    rows = [_row(folder, run, wanted) for run in list_runs_in_proj(folder)]
    _require(folder, wanted, rows)
    if sort == "run":
        return rows[::-1] if reverse else rows
    return _sorted(rows, lambda row: _value(row, sort), reverse=reverse)


def columns_of(rows: Iterable[RunRow], metrics: Sequence[str]) -> list[MetricKey]:
    """Return the metrics that rows have, in the order of the names that were asked for."""
    found = {key for row in rows for key in row.last}
    place = {name: number for number, name in enumerate(metrics)}
    last = len(place)
    return sorted(found, key=lambda key: (place.get(key.key, last), *(part or "" for part in key)))


def _row(project: Path, run: Path, metrics: Collection[str]) -> RunRow:
    path = run.relative_to(project).as_posix()
    path = run.absolute().name if path == "." else path
    head = None
    try:
        head = read_head(run)
        return RunRow(path=path, head=head, last=_last(run, metrics) if metrics else {})
    except ProvMLError as error:
        return RunRow(path=path, head=head, last={}, fault=str(error))


def _last(run: Path, metrics: Collection[str]) -> dict[MetricKey, float | None]:
    found = summaries_of(load(run, quiet=True), metrics)
    return {MetricKey(one.name, one.context, one.source): one.last for one in found}


def _require(project: Path, metrics: Iterable[str], rows: Sequence[RunRow]) -> None:
    """Raise for a metric that no run has: it is a slip of the pen."""
    found = {key.key for row in rows for key in row.last}
    for name in metrics:
        if rows and name not in found:
            known = sorted({label for row in rows for label in _labels(row)})
            raise not_found("run with a metric", name, known, where=str(project))


def _labels(row: RunRow) -> list[str]:
    if row.head is None:
        return []
    try:
        return [metric.name.key for metric in metrics_of(load(row.head.place, quiet=True))]
    except ProvMLError:
        return []


def _value(row: RunRow, sort: str) -> Any:
    if sort in _SORTS:
        return None if row.head is None else _SORTS[sort](row.head)
    values = (row.last[key] for key in columns_of([row], ()) if key.key == sort)
    value = next(values, None)
    return value if value == value else None  # noqa: PLR0124  NaN has no place in an order


def _sorted(rows: Sequence[RunRow], key: Callable[[RunRow], Any], *, reverse: bool) -> list[RunRow]:
    """Order rows; those without a value stay behind, either way."""
    keyed = [(key(row), row) for row in rows]
    told = sorted(
        (pair for pair in keyed if pair[0] is not None), key=lambda p: p[0], reverse=reverse
    )
    return [row for _, row in told] + [row for value, row in keyed if value is None]
