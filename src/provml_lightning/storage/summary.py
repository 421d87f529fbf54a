"""A metric in short, computed while its values go by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from provml_lightning.domain.reading import MetricKey, MetricSeries
from provml_lightning.storage.point_log import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provml_lightning.storage.formats.base import Block

__all__ = ["Summary"]


class Summary:
    """Watches blocks and keeps, for each metric, what :class:`MetricSeries` says."""

    def __init__(self) -> None:
        self._metrics: dict[MetricKey, _Metric] = {}

    def watch(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Return the blocks as they come, having looked at each."""
        for block in blocks:
            metric = self._metrics.get(block.name)
            if metric is None:
                self._metrics[block.name] = _Metric.of(block)
            else:
                metric.add(block)
            yield block

    def series(self, path: str | None) -> list[MetricSeries]:
        """Return the metrics seen so far, in the order in which they came."""
        return [metric.series(name, path) for name, metric in self._metrics.items()]


class _Value(NamedTuple):
    """One value, and the rank and segment of its writer."""

    writer: tuple[int, int]
    time: int
    step: int
    value: float


@dataclass(slots=True)
class _Metric:
    """What is known of a metric so far; a writer's blocks come together, in their order.

    Of two writers the time says who was first or last; within one the order in which it logged,
    whatever became of its clock. ``latest`` is this writer's last value so far, ``earlier`` that
    of the writers before it, ``last`` the later of the two.
    """

    unit: str | None
    rows: int
    first: _Value
    last: _Value
    latest: _Value
    earlier: _Value | None
    minimum: float | None
    maximum: float | None
    first_time: int
    last_time: int

    @classmethod
    def of(cls, block: Block) -> _Metric:
        low, high = _range(block)
        times = int(block.time.min()), int(block.time.max())
        first, last = _end(block, 0), _end(block, -1)
        return cls(block.unit, len(block.value), first, last, last, None, low, high, *times)

    def add(self, block: Block) -> None:
        self.unit = self.unit or block.unit
        self.rows += len(block.value)
        low, high = _range(block)
        self.minimum = min((v for v in (self.minimum, low) if v is not None), default=None)
        self.maximum = max((v for v in (self.maximum, high) if v is not None), default=None)
        self.first_time = min(self.first_time, int(block.time.min()))
        self.last_time = max(self.last_time, int(block.time.max()))
        self._add_ends(block)

    def _add_ends(self, block: Block) -> None:
        first, latest, earlier = _end(block, 0), _end(block, -1), self.earlier
        if first.writer != self.latest.writer:
            self.earlier = earlier = self.last
            self.first = min(self.first, first, key=lambda value: value.time)
        self.latest = latest
        self.last = earlier if earlier and earlier.time > latest.time else latest

    def series(self, name: MetricKey, path: str | None) -> MetricSeries:
        return MetricSeries(
            name=name,
            unit=self.unit,
            rows=self.rows,
            first=self.first.value,
            last=self.last.value,
            minimum=self.minimum,
            maximum=self.maximum,
            first_step=_step(self.first),
            last_step=_step(self.last),
            first_time=self.first_time,
            last_time=self.last_time,
            path=path,
        )


def _end(block: Block, index: int) -> _Value:
    """Return the first (0) or last (-1) value of a block."""
    time, step, value = block.time[index], block.step[index], block.value[index]
    return _Value((block.rank, block.segment), int(time), int(step), float(value))


def _range(block: Block) -> tuple[float | None, float | None]:
    """Return the least and the greatest number; NaN is none."""
    import numpy as np

    low = float(np.fmin.reduce(block.value))
    high = float(np.fmax.reduce(block.value))
    return (None, None) if low != low else (low, high)  # noqa: PLR0124  NaN differs from itself


def _step(value: _Value) -> int | None:
    return None if value.step == ABSENT else value.step
