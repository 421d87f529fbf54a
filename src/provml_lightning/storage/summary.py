"""A metric in short, computed while its values go by."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from provml_lightning.domain.reading import MetricKey, MetricSeries
from provml_lightning.storage.formats.base import FEW, groups
from provml_lightning.storage.point_log import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provml_lightning.storage.formats.base import Block

    # Time, step and value
    Point = tuple[int, int, float]

__all__ = ["Summary"]


class Summary:
    """Watches blocks and keeps, for each metric, what :class:`MetricSeries` says."""

    def __init__(self) -> None:
        # A metric's parts, one a writer: a writer's blocks come together, in their order.
        self._metrics: dict[MetricKey, list[_Part]] = {}

    def watch(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Return the blocks as they come, having looked at each."""
        for group in groups(blocks, FEW):
            for block, part in zip(group, _parts(group), strict=True):
                known = self._metrics.setdefault(block.name, [])
                if known and known[-1].writer == part.writer:
                    known[-1] = known[-1].then(part)
                else:
                    known.append(part)
            yield from group

    def series(self, path: str | None) -> list[MetricSeries]:
        """Return the metrics seen so far, in the order in which they came."""
        return [
            reduce(_Part.beside, parts).series(name, path) for name, parts in self._metrics.items()
        ]


class _Part(NamedTuple):
    """Some values of a metric in short; ``minimum`` and ``maximum`` are NaN if every value is."""

    writer: tuple[int, int]
    unit: str | None
    rows: int
    first: Point
    last: Point
    minimum: float
    maximum: float
    first_time: int
    last_time: int

    def then(self, later: _Part) -> _Part:
        """Add what the same writer logged later, whatever became of its clock."""
        return self._with(later, self.first, later.last)

    def beside(self, other: _Part) -> _Part:
        """Add what another writer logged; of two writers the time says who was first or last."""
        first = other.first if other.first[0] < self.first[0] else self.first
        last = self.last if self.last[0] > other.last[0] else other.last
        return self._with(other, first, last)

    def _with(self, other: _Part, first: Point, last: Point) -> _Part:
        return _Part(
            self.writer,
            self.unit or other.unit,
            self.rows + other.rows,
            first,
            last,
            other.minimum if _is_nan(self.minimum) else min(self.minimum, other.minimum),
            other.maximum if _is_nan(self.maximum) else max(self.maximum, other.maximum),
            min(self.first_time, other.first_time),
            max(self.last_time, other.last_time),
        )

    def series(self, name: MetricKey, path: str | None) -> MetricSeries:
        return MetricSeries(
            name=name,
            unit=self.unit,
            rows=self.rows,
            first=self.first[2],
            last=self.last[2],
            minimum=None if _is_nan(self.minimum) else self.minimum,
            maximum=None if _is_nan(self.maximum) else self.maximum,
            first_step=_step(self.first),
            last_step=_step(self.last),
            first_time=self.first_time,
            last_time=self.last_time,
            path=path,
        )


def _parts(group: list[Block]) -> Iterator[_Part]:
    """Return each block in short."""
    import numpy as np

    rows = np.array([len(block.value) for block in group])
    stops = rows.cumsum()
    starts = stops - rows
    time, step, value = (_joined(group, column) for column in ("time", "step", "value"))

    def points(places: Any) -> Iterator[Point]:
        return zip(*(column[places].tolist() for column in (time, step, value)), strict=True)

    columns = (
        [(block.rank, block.segment) for block in group],
        [block.unit for block in group],
        rows.tolist(),
        points(starts),
        points(stops - 1),
        np.fmin.reduceat(value, starts).tolist(),
        np.fmax.reduceat(value, starts).tolist(),
        np.minimum.reduceat(time, starts).tolist(),
        np.maximum.reduceat(time, starts).tolist(),
    )
    return map(_Part._make, zip(*columns, strict=True))


def _joined(group: list[Block], column: str) -> Any:
    import numpy as np

    columns = [getattr(block, column) for block in group]
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def _step(point: Point) -> int | None:
    return None if point[1] == ABSENT else point[1]


def _is_nan(number: float) -> bool:
    return number != number  # noqa: PLR0124  NaN differs from itself
