"""A metric in short, computed while its values go by."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

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


@dataclass(slots=True)
class _Metric:
    """What is known of a metric so far; a writer's blocks come together, in their order.

    Of two writers the time says who was first or last; within one the order in which it logged,
    whatever became of its clock. ``latest`` is this writer's last value so far, ``earlier`` that
    of the writers before it, ``last`` the later of the two.
    """

    unit: str | None
    rows: int
    first: Block
    last: Block
    latest: Block
    earlier: Block | None
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
        if _writer(block) != _writer(self.latest):
            self.earlier = self.last
            if block.time[0] < self.first.time[0]:
                self.first = _end(block, 0)
        self.latest = _end(block, -1)
        earlier = self.earlier
        self.last = earlier if earlier and earlier.time[0] > self.latest.time[0] else self.latest

    def series(self, name: MetricKey, path: str | None) -> MetricSeries:
        return MetricSeries(
            name=name,
            unit=self.unit,
            rows=self.rows,
            first=float(self.first.value[0]),
            last=float(self.last.value[0]),
            minimum=self.minimum,
            maximum=self.maximum,
            first_step=_step(self.first),
            last_step=_step(self.last),
            first_time=self.first_time,
            last_time=self.last_time,
            path=path,
        )


def _end(block: Block, index: int) -> Block:
    """Return the first (0) or last (-1) value of a block as a block of one row."""
    rows = slice(0, 1) if index == 0 else slice(-1, None)
    return dataclasses.replace(
        block,
        time=block.time[rows].copy(),
        step=block.step[rows].copy(),
        epoch=block.epoch[rows].copy(),
        value=block.value[rows].copy(),
    )


def _writer(block: Block) -> tuple[int, int]:
    return block.rank, block.segment


def _range(block: Block) -> tuple[float | None, float | None]:
    """Return the least and the greatest number; NaN is none."""
    import numpy as np

    low = float(np.fmin.reduce(block.value))
    high = float(np.fmax.reduce(block.value))
    return (None, None) if low != low else (low, high)  # noqa: PLR0124  NaN differs from itself


def _step(block: Block) -> int | None:
    step = int(block.step[0])
    return None if step == ABSENT else step
