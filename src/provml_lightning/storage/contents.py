"""A run read back from its files: the one source of every document, query and recovery."""

from __future__ import annotations

import heapq
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from provml_lightning.domain.reading import RunContents
from provml_lightning.domain.records import Ended, ModelVersion, Opened, Record, Resumed, Status
from provml_lightning.domain.settings import CompressorType, MetricsType
from provml_lightning.errors import StorageError
from provml_lightning.storage.cut_off import with_cut_off
from provml_lightning.storage.folding import with_folds
from provml_lightning.storage.formats import open_format
from provml_lightning.storage.index import RunIndex, read_index
from provml_lightning.storage.journal import JournalLines, read_journal
from provml_lightning.storage.liveness import is_running, process_place, seems_alive
from provml_lightning.storage.metrics import (
    Compiled,
    Source,
    open_sources,
    summarise,
    write_metrics,
)
from provml_lightning.storage.sorting import count_points
from provml_lightning.storage.totals import Sums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from provml_lightning.domain.reading import Writer
    from provml_lightning.storage.formats.base import MetricsFormat
    from provml_lightning.storage.layout import RunLayout

__all__ = [
    "Ledger",
    "is_settled",
    "open_ledger",
    "read_contents",
    "read_facts",
    "read_steadily",
    "write_contents",
]

_Answer = TypeVar("_Answer")
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Ledger:
    """The append-only files of a run as they were at one moment.

    Attributes:
        sealed: Stems of the writers whose values are in the metrics files and nowhere else.
    """

    layout: RunLayout
    index: RunIndex | None
    journals: Sequence[JournalLines]
    sources: Sequence[Source]
    sealed: Sequence[str]
    form: MetricsFormat

    @property
    def status(self) -> Status:
        """How the run stands: as its first rank's last segment says, or as its process does."""
        own = [journal for journal in self.journals if not journal.writer.forked]
        if not own:
            return Status.INCOMPLETE
        rank = min(journal.writer.rank for journal in own)
        main = max(
            (journal for journal in own if journal.writer.rank == rank),
            key=lambda journal: journal.writer.segment,
        )
        last = _last_word(main)
        if isinstance(last, Ended):
            return last.status
        return Status.RUNNING if self.seems_alive(main.writer) else Status.INCOMPLETE

    def covers(self, values: Mapping[str, int]) -> dict[str, list[int]]:
        """Return how much of each writer's files there is: bytes of journal, values of log."""
        before = self.index.covers if self.index else {}
        sizes = {journal.writer.stem: journal.size for journal in self.journals}
        # Whose log is sealed has as many values as when it was.
        sealed = {stem: count for stem, (_, count) in before.items()}
        return {stem: [size, values.get(stem, sealed.get(stem, 0))] for stem, size in sizes.items()}

    def finished(self) -> list[str]:
        """Return the stems of the writers that can write no more: ended, or dead for sure."""
        return [
            journal.writer.stem
            for journal in self.journals
            if _has_ended(journal) or is_running(journal.writer) is False
        ]

    def is_ours(self) -> bool:
        """Tell whether this process is the only one that wrote."""
        here = (os.getpid(), process_place())
        return all((journal.writer.pid, journal.writer.place) == here for journal in self.journals)

    def writing(self) -> list[Writer]:
        """Return the writers that have not ended and seem to be alive."""
        return [
            journal.writer
            for journal in self.journals
            if not _has_ended(journal) and self.seems_alive(journal.writer)
        ]

    def cut_off(self) -> dict[int, bool]:
        """Return the ranks, of several, whose last process neither ended nor seems to be alive.

        Those that are dead for sure are true; of another machine's only the files' age tells.
        """
        last = {one.writer.rank: one for one in self.journals if not one.writer.forked}
        if len(last) == 1:
            return {}
        open_ended = [one.writer for one in last.values() if not _has_ended(one)]
        silent = [writer for writer in open_ended if not self.seems_alive(writer)]
        return {writer.rank: is_running(writer) is False for writer in silent}

    def seems_alive(self, writer: Writer) -> bool:
        """Tell whether a writer's process still writes, as far as this machine can tell."""
        stem = writer.stem
        files = (self.layout.journal_file(stem), self.layout.points_file(stem))
        return seems_alive(writer, files)


def open_ledger(layout: RunLayout) -> Ledger:
    """Read a run's journals and find its point logs.

    Raises:
        StorageError: A file cannot be read, or a later version of the library wrote it.
    """
    index = read_index(layout.index)
    journals = [lines for path in layout.journal_files() if (lines := read_journal(path))]
    sealed = set(index.sealed if index else ())
    # Whose log is gone without a word in the index has no values but those in the metrics files.
    stems = (journal.writer.stem for journal in journals)
    sealed |= {stem for stem in stems if not layout.points_file(stem).exists()}
    sources = open_sources(layout, journals, sealed)
    return Ledger(layout, index, journals, sources, sorted(sealed), _form(index))


def read_steadily(layout: RunLayout, read: Callable[[Ledger], _Answer]) -> _Answer:
    """Return what ``read`` makes of a run; again where a run that closes moved its values.

    Raises:
        StorageError: A file cannot be read.
    """
    tries = 0
    while True:
        tries += 1
        try:
            return read(open_ledger(layout))
        except OSError as error:
            if not isinstance(error, FileNotFoundError) or tries == _TRIES:
                raise StorageError(
                    f"{layout.directory} cannot be read: {error.strerror or error}"
                ) from error


def read_contents(layout: RunLayout) -> RunContents:
    """Return what a run holds, reading only; works on a running and on a killed run.

    Raises:
        StorageError: A file cannot be read.
    """

    def read(ledger: Ledger) -> RunContents:
        sums = Sums(ledger.journals)
        found = summarise(layout, ledger.sources, ledger.sealed, ledger.form, sums.watch)
        return _contents(ledger, found, sums)

    return read_steadily(layout, read)


def write_contents(ledger: Ledger) -> tuple[RunContents, dict[str, list[int]]]:
    """Write the metrics files of a run; return what it holds and how much of each writer that is.

    Raises:
        OSError: The disk did not take them; the old files stand.
        StorageError: A file did not read back as it was written.
    """
    sums = Sums(ledger.journals)
    compiled = write_metrics(ledger.layout, ledger.sources, ledger.sealed, ledger.form, sums.watch)
    return _contents(ledger, compiled, sums), ledger.covers(compiled.covers)


def read_facts(layout: RunLayout) -> Iterator[tuple[int, Record]]:
    """Return what all processes told, in order of time, with the rank of each; no values.

    Raises:
        StorageError: A journal cannot be read.
    """
    return _in_order([lines for path in layout.journal_files() if (lines := read_journal(path))])


def is_settled(layout: RunLayout) -> bool:
    """Tell whether the documents of a run hold everything that its journals and logs do."""
    index = read_index(layout.index)
    if index is None or not (layout.directory / index.document).exists():
        return False
    return all(_covered(layout, index, path.stem) for path in layout.journal_files())


def _covered(layout: RunLayout, index: RunIndex, stem: str) -> bool:
    if stem not in index.covers:  # a process that was killed before its first line says nothing
        return read_journal(layout.journal_file(stem)) is None
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


def _contents(ledger: Ledger, compiled: Compiled, sums: Sums) -> RunContents:
    names = [series.name for series in compiled.series]
    told = _in_order(ledger.journals)
    return RunContents(
        directory=ledger.layout.directory.name,
        writers=tuple(journal.writer for journal in ledger.journals),
        records=tuple(with_cut_off(ledger, with_folds(ledger, told, names))),
        series=tuple(compiled.series),
        files=tuple(compiled.files),
        status=ledger.status,
        torn=sum(journal.torn for journal in ledger.journals),
        totals=tuple(sums.totals(compiled.series)),
    )


def _in_order(journals: Sequence[JournalLines]) -> Iterator[tuple[int, Record]]:
    """Return all facts by time; a clock that was set back does not change a journal's own order."""
    streams = [_timed(journal, position) for position, journal in enumerate(journals)]
    for _, _, rank, record in heapq.merge(*streams, key=lambda item: item[:2]):
        yield rank, record


def _timed(journal: JournalLines, position: int) -> Iterator[tuple[int, int, int, Record]]:
    latest = 0
    for record in journal.records:
        again = record.told if isinstance(record, ModelVersion) else None
        latest = max(latest, again or record.time)
        yield latest, position, journal.writer.rank, record


def _last_word(journal: JournalLines) -> Record | None:
    """Return what a process said last of how it stands; a note may follow."""
    words = reversed(journal.records)
    return next((word for word in words if isinstance(word, (Ended, Resumed, Opened))), None)


def _has_ended(journal: JournalLines) -> bool:
    last = _last_word(journal)
    return isinstance(last, Ended) and last.final
