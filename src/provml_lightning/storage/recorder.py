"""A process's own files of a run, and what waits in memory while the disk fails."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from collections import deque
from typing import TYPE_CHECKING

from provml_lightning.domain.records import Ended, Series
from provml_lightning.errors import MalformedDocumentError, StorageError
from provml_lightning.storage.index import read_index
from provml_lightning.storage.journal import Journal, encoded
from provml_lightning.storage.point_log import PointLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from provml_lightning.domain.reading import Writer
    from provml_lightning.domain.records import Record
    from provml_lightning.storage.layout import RunLayout

__all__ = ["Recorder"]

_MOST_FACTS = 100_000
_PERIOD = 1.0


class Recorder:
    """The writing end of a run in this process.

    Args:
        layout: The run, whose folder exists.
        writer: Who writes; its segment is the first that is tried.
        waiting: Values that may wait in memory where files cannot be mapped [1].
        on_fault: Called with the error when the disk fails, and with None when it works again.

    Raises:
        OSError: The files cannot be made.
    """

    def __init__(
        self,
        layout: RunLayout,
        writer: Writer,
        *,
        waiting: int,
        on_fault: Callable[[OSError | None], None],
    ) -> None:
        layout.journal.mkdir(exist_ok=True)
        self._journal, self.writer = _claim(layout, writer)
        self._lock = threading.Lock()
        self._lines: deque[bytes] = deque()
        self._on_fault = on_fault
        self._dropped_facts = 0
        self._stop = threading.Event()
        self._retrying = False
        try:
            self.points = PointLog(
                layout.points_file(self.writer.stem), waiting=waiting, on_fault=on_fault
            )
        except (OSError, StorageError):
            self._journal.close()
            raise

    def append(self, record: Record) -> None:
        """Write a fact at once; one that the disk refuses waits, in order, for the next try.

        Raises:
            RecordError: A field holds something else than it is for; nothing behind it is held up.
        """
        line = encoded(record)
        with self._lock:
            failed = bool(self._lines)
            # A name or an end that is lost loses more than itself.
            if len(self._lines) < _MOST_FACTS or isinstance(record, (Series, Ended)):
                self._lines.append(line)
            else:
                self._dropped_facts += 1
            error = self._write_lines()
        self._tell(error, failed=failed)

    def flush(self) -> None:
        """Write what waits in memory, if the disk takes it."""
        self._write_waiting_facts()
        self.points.flush()

    def sync(self) -> None:
        """Make everything that was recorded outlive the machine.

        Raises:
            OSError: The disk did not take it.
        """
        self.flush()
        self._journal.sync()
        self.points.sync()

    def end_values(self) -> None:
        """Take no more values; facts may follow, the end of this process's part being the last.

        Who reads that end may remove the log of values, so the log must be whole before it.
        """
        self._write_waiting_facts()
        self.points.close()

    def close(self) -> None:
        """Write what waits and let go of the files; a second call does nothing."""
        try:
            self.end_values()
        finally:
            self._stop.set()
            with self._lock:
                self._dropped_facts += len(self._lines)
                self._lines.clear()
                self._journal.close()

    def abandon(self) -> None:
        """Let go of the files without writing, in a child born by fork."""
        self._stop.set()
        self.points.abandon()
        self._journal.close()

    @property
    def is_closed(self) -> bool:
        """Tell whether the files take nothing more."""
        return self._stop.is_set()

    @property
    def lost(self) -> int:
        """Values and facts that found no place in memory while the disk failed [1]."""
        return self._dropped_facts + self.points.dropped

    @property
    def waiting(self) -> int:
        """Values and facts that no file has yet [1]."""
        return len(self._lines) + self.points.waiting

    def _write_waiting_facts(self) -> None:
        with self._lock:
            failed = bool(self._lines)
            error = self._write_lines()
        self._tell(error, failed=failed)

    def _write_lines(self) -> OSError | None:
        while self._lines:
            try:
                self._journal.write(self._lines[0])
            except OSError as error:
                return error
            self._lines.popleft()
        return None

    def _tell(self, error: OSError | None, *, failed: bool) -> None:
        """Say, with no lock held, that the disk began to fail or works again."""
        if error is not None:
            self._retry_soon()
            self._on_fault(error)
        elif failed:
            self._on_fault(None)

    def _retry_soon(self) -> None:
        with self._lock:
            start, self._retrying = not self._retrying, True
        if start:
            threading.Thread(target=self._retry, name="provml-facts", daemon=True).start()

    def _retry(self) -> None:
        """Try once a second: a name that never gets written would lose all its metric's values."""
        while not self._stop.wait(_PERIOD):
            with self._lock:
                self._retrying = self._write_lines() is not None
                if self._retrying:
                    continue
            with contextlib.suppress(StorageError):  # a strict run raises where it logs, not here
                self._on_fault(None)
            return


def _claim(layout: RunLayout, writer: Writer) -> tuple[Journal, Writer]:
    """Make the first journal of this rank that nobody has, or had before its folder was emptied."""
    try:
        index = read_index(layout.index)
    except MalformedDocumentError:  # whoever writes the documents says so
        index = None
    sealed = index.sealed if index else ()
    while True:
        path = layout.journal_file(writer.stem)
        # A point log without its journal belongs to somebody who lost the journal, not to us.
        free = not path.exists() and not os.path.lexists(layout.points_file(writer.stem))
        if free and writer.stem not in sealed:
            try:
                return Journal(path, writer), writer
            except FileExistsError:
                pass
        writer = dataclasses.replace(writer, segment=writer.segment + 1)
