"""A run read back from its files: the one source of every document, query and recovery."""

from __future__ import annotations

import heapq
import platform
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from provml_lightning.domain.reading import RunContents, Writer
from provml_lightning.domain.records import Ended, Record, Status
from provml_lightning.domain.settings import CompressorType, MetricsType
from provml_lightning.storage.formats import open_format
from provml_lightning.storage.index import RunIndex, read_index
from provml_lightning.storage.journal import JournalLines, read_journal
from provml_lightning.storage.metrics import (
    Compiled,
    Source,
    open_sources,
    summarise,
    write_metrics,
)
from provml_lightning.storage.recorder import process_start
from provml_lightning.storage.sorting import count_points

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from provml_lightning.storage.formats.base import MetricsFormat
    from provml_lightning.storage.layout import RunLayout

__all__ = ["Ledger", "is_settled", "open_ledger", "read_contents", "write_contents"]

_FRESH = 300.0


@dataclass(frozen=True, slots=True)
class Ledger:
    """The append-only files of a run as they were at one moment."""

    layout: RunLayout
    index: RunIndex | None
    journals: Sequence[JournalLines]
    sources: Sequence[Source]
    form: MetricsFormat

    @property
    def sealed(self) -> Sequence[str]:
        """Stems of the writers whose values are in the metrics files and nowhere else."""
        return self.index.sealed if self.index else ()

    def covers(self, values: Mapping[str, int]) -> dict[str, list[int]]:
        """Return how much of each writer's files there is: bytes of journal, values of log."""
        stems = ((journal.writer.stem, journal.size) for journal in self.journals)
        return {stem: [size, values.get(stem, 0)] for stem, size in stems}

    def finished(self) -> list[str]:
        """Return the stems of the writers that can write no more: ended, or dead on this host."""
        return [journal.writer.stem for journal in self.journals if not self._may_write(journal)]

    def _may_write(self, journal: JournalLines) -> bool:
        last = journal.records[-1] if journal.records else None
        if isinstance(last, Ended) and last.final:
            return False
        stem = journal.writer.stem
        files = (self.layout.journal_file(stem), self.layout.points_file(stem))
        return journal.writer.host != platform.node() or is_alive(journal.writer, files)


def open_ledger(layout: RunLayout) -> Ledger:
    """Read a run's journals and find its point logs.

    Raises:
        StorageError: A file cannot be read, or a later version of the library wrote it.
    """
    index = read_index(layout.index)
    journals = [lines for path in layout.journal_files() if (lines := read_journal(path))]
    sources = open_sources(layout, journals, index.sealed if index else ())
    return Ledger(layout, index, journals, sources, _form(index))


def read_contents(layout: RunLayout) -> RunContents:
    """Return what a run holds, reading only; works on a running and on a killed run.

    Raises:
        StorageError: A file cannot be read.
    """
    ledger = open_ledger(layout)
    return _contents(ledger, summarise(layout, ledger.sources, ledger.sealed, ledger.form))


def write_contents(ledger: Ledger) -> tuple[RunContents, dict[str, list[int]]]:
    """Write the metrics files of a run; return what it holds and how much of each writer that is.

    Raises:
        OSError: The disk did not take them; the old files stand.
        StorageError: A file did not read back as it was written.
    """
    compiled = write_metrics(ledger.layout, ledger.sources, ledger.sealed, ledger.form)
    return _contents(ledger, compiled), ledger.covers(compiled.covers)


def is_settled(layout: RunLayout) -> bool:
    """Tell whether the documents of a run hold everything that its journals and logs do."""
    index = read_index(layout.index)
    if index is None or not (layout.directory / index.document).exists():
        return False
    stems = [path.stem for path in layout.journal_files()]
    return all(stem in index.covers and _covered(layout, index, stem) for stem in stems)


def is_alive(writer: Writer, files: Sequence[Path]) -> bool:
    """Tell whether the process that wrote may still write; on another host only age tells."""
    if writer.host == platform.node():
        start = process_start(writer.pid)
        return start is not None and start == writer.process_start
    newest = max((path.stat().st_mtime for path in files if path.exists()), default=0.0)
    return time.time() - newest < _FRESH


def _covered(layout: RunLayout, index: RunIndex, stem: str) -> bool:
    size, values = index.covers[stem]
    if layout.journal_file(stem).stat().st_size != size:
        return False
    return stem in index.sealed or count_points(layout.points_file(stem)) == values


def _form(index: RunIndex | None) -> MetricsFormat:
    settings = index.settings if index else {}
    compressor = settings.get("use_compressor")
    return open_format(
        MetricsType(settings.get("metrics_file_type", MetricsType.PARQUET)),
        separator=settings.get("csv_separator", ","),
        compressor=CompressorType(compressor) if isinstance(compressor, str) else compressor,
    )


def _contents(ledger: Ledger, compiled: Compiled) -> RunContents:
    return RunContents(
        directory=ledger.layout.directory.name,
        writers=tuple(journal.writer for journal in ledger.journals),
        records=tuple(_in_order(ledger.journals)),
        series=tuple(compiled.series),
        files=tuple(compiled.files),
        status=_status(ledger),
        torn=sum(journal.torn for journal in ledger.journals),
    )


def _in_order(journals: Sequence[JournalLines]) -> Iterator[tuple[int, Record]]:
    """Return all facts by time; a clock that was set back does not change a journal's own order."""
    streams = [_timed(journal, position) for position, journal in enumerate(journals)]
    for _, _, rank, record in heapq.merge(*streams, key=lambda item: item[:2]):
        yield rank, record


def _timed(journal: JournalLines, position: int) -> Iterator[tuple[int, int, int, Record]]:
    latest = 0
    for record in journal.records:
        latest = max(latest, record.time)
        yield latest, position, journal.writer.rank, record


def _status(ledger: Ledger) -> Status:
    """Return how the run stands: as its first rank's last segment says, or as its process does."""
    own = [journal for journal in ledger.journals if not journal.writer.forked]
    if not own:
        return Status.INCOMPLETE
    rank = min(journal.writer.rank for journal in own)
    main = max(
        (journal for journal in own if journal.writer.rank == rank),
        key=lambda journal: journal.writer.segment,
    )
    if main.records and isinstance(main.records[-1], Ended):
        return main.records[-1].status
    stem = main.writer.stem
    files = (ledger.layout.journal_file(stem), ledger.layout.points_file(stem))
    return Status.RUNNING if is_alive(main.writer, files) else Status.INCOMPLETE
