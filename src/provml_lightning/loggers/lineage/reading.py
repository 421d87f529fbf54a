"""Big files are read for their digests beside the training, never in its way."""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path

from provml_lightning.capture.artifacts import describe_file
from provml_lightning.domain.files import StoredFile
from provml_lightning.loggers.lineage.places import Mark, Place, mark_of

__all__ = ["Reader"]


class Reader:
    """Reads files one after the other in a thread that ends when there is nothing to read."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._waiting: deque[tuple[Place, Mark]] = deque()
        self._read: deque[tuple[StoredFile, Mark]] = deque()
        self._lock = threading.RLock()  # a signal may come while it is held
        self._thread: threading.Thread | None = None

    def is_idle(self) -> bool:
        """Tell whether nothing is being read."""
        return self._thread is None

    def read(self, place: Place, mark: Mark) -> None:
        """Read a file as soon as there is time, if it is then still the one with this mark."""
        if self._process != os.getpid():  # forked: the thread is not here, its lock may be held
            self._begin()
        with self._lock:
            self._waiting.append((place, mark))
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="provml-reader", daemon=True)
                with suppress(RuntimeError):  # no thread can start now: with the next file, maybe
                    thread.start()
                    self._thread = thread

    def finished(self, wait: float = 0.0) -> list[tuple[StoredFile, Mark]]:
        """Return what was read since the last call, after waiting at most ``wait`` [s] for more."""
        thread = self._thread if self._process == os.getpid() else None
        if thread is not None and wait:
            thread.join(wait)
        return [self._read.popleft() for _ in range(len(self._read))]

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                place, mark = self._waiting.popleft()
            with suppress(Exception):  # it was deleted, or no memory is left: it has no digest
                self._look(place, mark)

    def _look(self, place: Place, mark: Mark) -> None:
        described = describe_file(Path(place.path), shown_as=place.shown)
        if mark_of(place) == mark:  # else another took its place meanwhile
            self._read.append((described, mark))
