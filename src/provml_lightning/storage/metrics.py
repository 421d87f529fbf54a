"""All values of a run: from every writer's point log into the metrics files, and back."""

from __future__ import annotations

import heapq
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.reading import MetricKey, MetricSeries, MetricsFile, stem
from provml_lightning.domain.records import Series
from provml_lightning.errors import StorageError
from provml_lightning.storage.formats.base import (
    FEW,
    ROWS,
    Block,
    MetricsFormat,
    block_order,
    name_order,
)
from provml_lightning.storage.sorting import SortedPoints, read_number, sorted_points
from provml_lightning.storage.summary import Summary
from provml_lightning.storage.whole import (
    discard,
    make_durable,
    measure,
    standing,
    standing_in,
    take_place,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from provml_lightning.storage.journal import JournalLines
    from provml_lightning.storage.layout import RunLayout
    from provml_lightning.storage.sorting import Records

    Watch = Callable[[Iterable[Block]], Iterator[Block]]

__all__ = ["Compiled", "Source", "open_sources", "read_blocks", "summarise", "write_metrics"]


@dataclass(frozen=True, slots=True)
class Source:
    """A writer whose values are in its point log: its series by name."""

    rank: int
    segment: int
    path: Path
    series: Mapping[MetricKey, Series]

    @property
    def stem(self) -> str:
        """The name that this writer's files share."""
        return stem(self.rank, self.segment)

    @property
    def numbers(self) -> list[int]:
        """The numbers of its series, in the order of the metrics files."""
        ordered = sorted(
            self.series, key=lambda name: (_context_order(name.context), name_order(name))
        )
        return [self.series[name].number for name in ordered]


def open_sources(
    layout: RunLayout, journals: Iterable[JournalLines], sealed: Collection[str]
) -> list[Source]:
    """Return the writers whose values are not in the metrics files for good."""
    sources = []
    for journal in journals:
        writer = journal.writer
        if writer.stem in sealed:
            continue
        series = {
            MetricKey(record.key, record.context, record.source): record
            for record in journal.records
            if isinstance(record, Series)
        }
        path = layout.points_file(writer.stem)
        sources.append(Source(writer.rank, writer.segment, path, series))
    return sources


@dataclass(frozen=True, slots=True)
class Compiled:
    """What the metrics of a run came to.

    Attributes:
        covers: For each writer with a log, how many values were read from it [1].
    """

    files: list[MetricsFile]
    series: list[MetricSeries]
    covers: dict[str, int]


def write_metrics(
    layout: RunLayout,
    sources: Sequence[Source],
    sealed: Sequence[str],
    form: MetricsFormat,
    watch: Watch = iter,
) -> Compiled:
    """Write one file a context, with the values of every writer; old files are replaced whole.

    Args:
        layout: The run.
        sources: The writers whose values are not in the files for good.
        sealed: Stems of those whose are.
        form: How the files are written.
        watch: Sees all blocks of a context as they go by.

    Raises:
        OSError: The disk did not take them; the old files stand.
        StorageError: A file reads back with another number of rows than was written.
    """

    def write(path: Path, blocks: Iterator[Block]) -> int | None:
        return _write_whole(path, blocks, form) or None

    with sorted_points(_asked(sources), layout.journal) as logs:
        pairs = list(zip(sources, logs, strict=True))
        return _compile(layout, pairs, sealed, form, write, watch)


def summarise(
    layout: RunLayout,
    sources: Sequence[Source],
    sealed: Sequence[str],
    form: MetricsFormat,
    watch: Watch = iter,
) -> Compiled:
    """Return what :func:`write_metrics` would, reading only; a series has a path if its file is."""

    def look(path: Path, blocks: Iterator[Block]) -> int | None:
        for _ in blocks:
            pass
        place = standing(path)
        return form.count(place) if place else None

    with sorted_points(_asked(sources), folder=None) as logs:
        pairs = list(zip(sources, logs, strict=True))
        return _compile(layout, pairs, sealed, form, look, watch)


def _asked(sources: Iterable[Source]) -> Iterator[tuple[Path, list[int]]]:
    return ((source.path, source.numbers) for source in sources)


def _compile(
    layout: RunLayout,
    logs: Sequence[tuple[Source, SortedPoints]],
    sealed: Sequence[str],
    form: MetricsFormat,
    settle: Callable[[Path, Iterator[Block]], int | None],
    watch: Watch,
) -> Compiled:
    """Take every context's values past ``settle``, which returns the rows of its file, if any."""
    covers = {source.stem: sum(points.counts.values()) for source, points in logs}
    compiled = Compiled([], [], covers)
    for context in _contexts(layout, [source for source, _ in logs], form):
        summary = Summary()
        path = layout.metrics_file(context, form.suffix)
        blocks = watch(_merged(path, context, logs, sealed, form))
        rows = settle(path, summary.watch(blocks))
        if rows is not None:
            compiled.files.append(_described(layout, path, context, rows, form))
        compiled.series.extend(summary.series(layout.relative(path) if rows else None))
    return compiled


def read_blocks(
    layout: RunLayout,
    name: MetricKey,
    sources: Sequence[Source],
    sealed: Sequence[str],
    form: MetricsFormat,
) -> Iterator[Block]:
    """Return one metric's values, those in the metrics file and those that wait in a log."""
    stored: Iterator[Block] = iter(())
    if sealed and (place := standing(layout.metrics_file(name.context, form.suffix))):
        stored = _only_sealed(form.read(place, name), sealed)
    waiting = [
        _block(name, record.unit, source, _columns(records))
        for source in sources
        if (record := source.series.get(name)) is not None
        for records in read_number(source.path, record.number)
        if len(records)
    ]
    yield from heapq.merge(stored, waiting, key=block_order)


def _contexts(
    layout: RunLayout, sources: Sequence[Source], form: MetricsFormat
) -> list[str | None]:
    found = {name.context for source in sources for name in source.series}
    found |= {form.context_of(place) for place in standing_in(layout.metrics, form.suffix)}
    return sorted(found, key=_context_order)


def _context_order(context: str | None) -> tuple[bool, str]:
    return context is not None, context or ""


def _merged(
    path: Path,
    context: str | None,
    logs: Sequence[tuple[Source, SortedPoints]],
    sealed: Sequence[str],
    form: MetricsFormat,
) -> Iterator[Block]:
    streams = [_from_log(source, points, context) for source, points in logs]
    if sealed and (place := standing(path)):
        streams.insert(0, _only_sealed(form.scan(place), sealed))
    return heapq.merge(*streams, key=block_order)


def _from_log(source: Source, points: SortedPoints, context: str | None) -> Iterator[Block]:
    wanted = {
        record.number: (name, record.unit)
        for name, record in source.series.items()
        if name.context == context
    }
    for parts, records in points.read(wanted, ROWS, FEW):
        columns = _columns(records)
        stop = 0
        for number, count in parts:
            start, stop = stop, stop + count
            yield _block(*wanted[number], source, [column[start:stop] for column in columns])


def _columns(records: Records) -> list[Any]:
    """Return time, step, epoch and value of records."""
    # Files hold microseconds; a value says the same before and after it is in one.
    time = records["time"] // 1000 * 1000
    return [time, *(records[column].copy() for column in ("step", "epoch", "value"))]


def _block(name: MetricKey, unit: str | None, source: Source, columns: Sequence[Any]) -> Block:
    return Block(name, unit, source.rank, source.segment, *columns)


def _only_sealed(blocks: Iterable[Block], sealed: Sequence[str]) -> Iterator[Block]:
    """Return the blocks whose writers have no log any more."""
    return (block for block in blocks if stem(block.rank, block.segment) in sealed)


def _write_whole(path: Path, blocks: Iterable[Block], form: MetricsFormat) -> int:
    """Write under a temporary name, read back, count, make durable, rename."""
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        discard(temporary)
        rows = form.write(temporary, blocks)
        found = form.count(temporary)
        if found != rows:
            raise StorageError(f"{path}: {rows} values were written and {found} read back")
        if rows:
            make_durable(temporary)
            take_place(temporary, path)
    finally:
        discard(temporary)
    return rows


def _described(
    layout: RunLayout, path: Path, context: str | None, rows: int, form: MetricsFormat
) -> MetricsFile:
    size, digest = measure(standing(path) or path)
    return MetricsFile(
        path=layout.relative(path),
        context=context,
        rows=rows,
        size=size,
        sha256=digest,
        media_type=form.media_type,
    )
