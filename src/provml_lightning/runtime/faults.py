"""What happens when the disk fails: one warning, a note in the document, no exception."""

from __future__ import annotations

import logging
import threading
import time
import warnings
from typing import TYPE_CHECKING

from provml_lightning.domain.records import Note
from provml_lightning.domain.redaction import redact
from provml_lightning.errors import (
    ProvMLError,
    ProvMLWarning,
    RecordDroppedWarning,
    StorageError,
    StorageWarning,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Faults", "lost_note", "warn"]

_logger = logging.getLogger("provml_lightning")


def warn(message: str, category: type[ProvMLWarning] = StorageWarning) -> None:
    """Warn; where warnings are errors, log instead: no fault of ours may stop a training."""
    try:
        warnings.warn(message, category, stacklevel=3)
    except ProvMLWarning:
        _logger.exception(message)


class Faults:
    """The disk's failures during one run.

    Args:
        run: The run's name, for the message.
        strict: Raise instead of warning.
        note: Takes the note that tells of a failure that is over.
    """

    def __init__(self, run: str, *, strict: bool, note: Callable[[Note], None]) -> None:
        self._run = run
        self._strict = strict
        self._note = note
        self._lock = threading.Lock()
        self._since: tuple[int, OSError] | None = None
        self._warned = False
        self._excused: set[str] = set()

    def report(self, error: OSError | None) -> None:
        """Take the error that the disk gave, or None where it works again.

        Raises:
            StorageError: The disk failed and the run is strict.
        """
        if error is not None:
            self._begin(error)
            return
        with self._lock:
            over, self._since = self._since, None
        if over is not None:
            self._note(_told(over))

    def excuse(self, topic: str, error: ProvMLError) -> None:
        """Take something that could not be recorded: a note each, one warning a topic.

        Raises:
            ProvMLError: The run is strict.
        """
        if self._strict:
            raise error
        message = redact(str(error))
        with self._lock:
            first = topic not in self._excused
            self._excused.add(topic)
        self._note(Note(time=time.time_ns(), topic=topic, message=message))
        if first:
            warn(f"{self._run}: {message}", RecordDroppedWarning)

    def _begin(self, error: OSError) -> None:
        reason = error.strerror or str(error)
        if self._strict:
            raise StorageError(f"{self._run}: the disk takes nothing more: {reason}") from error
        with self._lock:
            self._since = self._since or (time.time_ns(), error)
            first, self._warned = not self._warned, True
        if first:
            warn(
                f"{self._run}: the disk takes nothing more ({reason}). Training goes on; what is"
                " logged waits in memory, up to 1 000 000 values, and is written when there is room"
            )


def lost_note(count: int) -> Note:
    """Return the note that values and facts were lost [1]."""
    return Note(
        time=time.time_ns(),
        topic="storage",
        message=f"{count} values and facts were lost: the disk took nothing until the end, or for"
        " longer than memory lasted",
        count=count,
    )


def _told(fault: tuple[int, OSError]) -> Note:
    since, error = fault
    seconds = (time.time_ns() - since) / 1e9
    return Note(
        time=time.time_ns(),
        topic="storage",
        message=f"for {seconds:.1f} s the disk took nothing ({error.strerror or error}); what was"
        " logged meanwhile waited in memory",
    )
