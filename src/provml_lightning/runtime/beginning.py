"""The first words of a process in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.errors import StorageError
from provml_lightning.storage.liveness import this_process
from provml_lightning.storage.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provml_lightning.domain.records import Record
    from provml_lightning.runtime.faults import Faults
    from provml_lightning.storage.layout import RunLayout

__all__ = ["begin"]


def begin(
    layout: RunLayout,
    rank: int,
    first: Iterable[Record],
    *,
    forked: bool,
    waiting: int,
    faults: Faults,
) -> Recorder:
    """Make this process's files of a run and tell them what everything else refers to.

    Raises:
        StorageError: The files cannot be made.
    """
    writer = this_process(rank, forked=forked)
    try:
        recorder = Recorder(layout, writer, waiting=waiting, on_fault=faults.report)
    except OSError as error:
        raise StorageError(
            f"{layout.journal} cannot be written: {error.strerror or error}. Give another folder"
            " with save_dir= or provenance_save_dir="
        ) from error
    for record in first:
        recorder.append(record)
    return recorder
