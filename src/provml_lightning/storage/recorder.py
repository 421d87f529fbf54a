"""A process's own files of a run, and what waits in memory while the disk fails."""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from provml_lightning.storage.journal import Journal
from provml_lightning.storage.point_log import PointLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from provml_lightning.domain.reading import Writer
    from provml_lightning.domain.records import Record
    from provml_lightning.storage.layout import RunLayout

__all__ = ["Recorder", "process_start"]

_MOST_FACTS = 100_000


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
        self._facts: deque[Record] = deque()
        self._on_fault = on_fault
        self._dropped_facts = 0
        self.points = PointLog(
            layout.points_file(self.writer.stem), waiting=waiting, on_fault=on_fault
        )

    def append(self, record: Record) -> None:
        """Write a fact at once; one that the disk refuses waits, in order, for the next try."""
        with self._lock:
            self._facts.append(record)
            if len(self._facts) > _MOST_FACTS:
                self._facts.popleft()
                self._dropped_facts += 1
            failed = len(self._facts) > 1
            error = self._write_facts()
        if error is not None and not failed:
            self._on_fault(error)
        elif error is None and failed:
            self._on_fault(None)

    def flush(self) -> None:
        """Write what waits in memory, if the disk takes it."""
        with self._lock:
            self._write_facts()
        self.points.flush()

    def sync(self) -> None:
        """Make everything that was recorded outlive the machine.

        Raises:
            OSError: The disk did not take it.
        """
        self.flush()
        self._journal.sync()
        self.points.sync()

    def close(self) -> None:
        """Write what waits and let go of the files; a second call does nothing."""
        self.flush()
        self.points.close()
        self._journal.close()

    def abandon(self) -> None:
        """Let go of the files without writing, in a child born by fork."""
        self.points.abandon()
        self._journal.close()

    @property
    def lost(self) -> int:
        """Values and facts that found no place in memory while the disk failed [1]."""
        return self._dropped_facts + self.points.dropped

    @property
    def waiting(self) -> int:
        """Values and facts that no file has yet [1]."""
        return len(self._facts) + self.points.waiting

    def _write_facts(self) -> OSError | None:
        while self._facts:
            try:
                self._journal.append(self._facts[0])
            except OSError as error:
                return error
            self._facts.popleft()
        return None


def process_start(pid: int) -> int | None:
    """Return when a process of this machine started, or None where nobody says.

    Together with the process id it names one process for ever.

    Source:
        ``/proc/<pid>/stat``, field 22 [clock ticks since boot].
    """
    if sys.platform != "linux":
        return None
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
        return int(after_name.split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _claim(layout: RunLayout, writer: Writer) -> tuple[Journal, Writer]:
    """Make the first journal of this rank that nobody has."""
    while True:
        path = layout.journal_file(writer.stem)
        # A point log without its journal belongs to somebody who lost the journal, not to us.
        if not path.exists() and not os.path.lexists(layout.points_file(writer.stem)):
            try:
                return Journal(path, writer), writer
            except FileExistsError:
                pass
        writer = dataclasses.replace(writer, segment=writer.segment + 1)
