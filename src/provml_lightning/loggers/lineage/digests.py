"""The digests of checkpoints, told as soon as their files were read."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from provml_lightning.errors import RecordError
from provml_lightning.loggers.lineage.kept import Kept
from provml_lightning.loggers.lineage.places import Mark, mark_of
from provml_lightning.loggers.lineage.reading import Reader
from provml_lightning.runtime.run import Run

if TYPE_CHECKING:
    from provml_lightning.domain.files import StoredFile
    from provml_lightning.domain.records import ModelVersion

__all__ = ["Digests"]

_LONGEST_WAIT = 10.0  # when documents are written [s]


class Digests:
    """Reads files beside the training; a version is told again once its digest is known."""

    def __init__(self) -> None:
        self._unread: dict[tuple[str, Mark], ModelVersion] = {}
        self._reader = Reader()

    def want(self, known: Kept) -> None:
        """Read a checkpoint as soon as there is time."""
        self._unread[known.place.shown, known.mark] = known.told
        self._reader.read(known.place, known.mark)

    def tell(self, run: Run, kept: Mapping[str, Kept], wait: float = 0.0) -> None:
        """Tell the digests of what was read, after waiting at most ``wait`` [s] for more."""
        for file, mark in self._reader.finished(wait):
            told = self._unread.pop((file.path, mark), None)
            known = kept.get(file.path)
            if known is not None and known.mark == mark:
                told = known.told
            if told is None:
                continue
            whole = _with_digest(told, file)
            run.record(whole)
            if known is not None and known.mark == mark:
                known.told = whole

    def finish(self, run: Run, kept: Mapping[str, Kept]) -> None:
        """Tell all that can be read within some seconds; say what the disk does not give.

        Raises:
            ProvMLError: A file could not be read, and the run is strict.
        """
        until = time.monotonic() + _LONGEST_WAIT
        self.tell(run, kept, _LONGEST_WAIT)
        if not self._reader.is_idle():
            return  # what is being read is told at the next writing
        self._unread.clear()  # they were deleted before
        lacking = [known for known in kept.values() if known.lacks_digest]
        for known in lacking:
            self.want(known)
        self.tell(run, kept, max(0.0, until - time.monotonic()) if lacking else 0.0)
        for known in lacking if self._reader.is_idle() else ():
            if known.lacks_digest and mark_of(known.place) == known.mark:
                shown = known.place.shown
                told = f"{shown} could not be read: the record has no digest of it"
                run.excuse("digest", RecordError(told))


def _with_digest(told: ModelVersion, file: StoredFile) -> ModelVersion:
    again = replace(told, told=time.time_ns())
    return replace(again, stored=file) if told.stored else replace(again, original=file)
