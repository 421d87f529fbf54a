"""The last words of a run: of its process, of the ranks that are missing, of what was lost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from provml_lightning.domain.records import Note
from provml_lightning.errors import StorageError
from provml_lightning.runtime.faults import lost_note, warn
from provml_lightning.runtime.snapshot import wait_for_ranks

if TYPE_CHECKING:
    from collections.abc import Collection

    from provml_lightning.domain.records import Ended
    from provml_lightning.storage.layout import RunLayout
    from provml_lightning.storage.recorder import Recorder

__all__ = ["admit_losses", "await_ranks", "write_end"]


def write_end(recorder: Recorder, end: Ended) -> None:
    """Write what waits, say what was lost, and that this process's part has ended."""
    try:
        recorder.end_values()
        if recorder.lost:
            recorder.append(lost_note(recorder.lost))
        recorder.append(end)
    finally:
        recorder.close()


def await_ranks(layout: RunLayout, own: int, expected: Collection[int]) -> Note | None:
    """Give the other ranks time to end; return what the document must say of those who did not."""
    try:
        missing = wait_for_ranks(layout, own, expected)
    except StorageError as failure:
        warn(str(failure))
        return None
    if not missing:
        return None
    told = ", ".join(map(str, missing))
    message = f"rank {told} had not ended when the run did; what it logged later is missing"
    return Note(time=time.time_ns(), topic="ranks", message=message)


def admit_losses(run: str, lost: int) -> None:
    """Say what found no place in memory while the disk took nothing.

    Raises:
        StorageError: Something was lost.
    """
    if lost:
        raise StorageError(f"{run}: {lost_note(lost).message}")
