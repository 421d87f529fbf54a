"""Finish what a killed process could not: compile its run and seal what nobody writes any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provml_lightning.domain.records import Status
from provml_lightning.runtime.snapshot import compile_run
from provml_lightning.storage.contents import is_settled, open_ledger, read_contents
from provml_lightning.storage.index import read_index

if TYPE_CHECKING:
    from provml_lightning.domain.reading import RunContents, Writer
    from provml_lightning.storage.layout import RunLayout

__all__ = ["Recovery", "needs_recovery", "recover"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What a recovery found.

    Attributes:
        changed: Something was written; False where the record was whole before.
        values: Values in the metrics files [1].
        facts: Facts in the journals [1].
        torn: Lines that were not whole, each of which is lost alone [1].
        writing: Writers that may still be alive; what they add later is not here.
        kept: Writers of which this machine cannot tell; their logs stay beside the metrics files.
    """

    changed: bool
    status: Status
    values: int
    facts: int
    torn: int
    writing: tuple[Writer, ...]
    kept: tuple[Writer, ...]

    @property
    def whole(self) -> bool:
        """Tell whether the documents hold everything and nobody adds to it."""
        return not self.writing and self.status is not Status.RUNNING


def needs_recovery(layout: RunLayout) -> bool:
    """Tell whether a recovery would write something.

    Raises:
        StorageError: A file cannot be read.
    """
    index = read_index(layout.index)
    if index is None or not is_settled(layout):
        return True
    ledger = open_ledger(layout)
    return index.status is not ledger.status or not set(ledger.finished()) <= set(index.sealed)


def recover(layout: RunLayout) -> Recovery:
    """Write the documents of a run from its journals and logs, and seal those of dead writers.

    It may be called at any time, also while the run is written: values of writers that may still
    be alive stay where they are.

    Raises:
        StorageError: A file cannot be read, or the disk did not take one.
    """
    changed = needs_recovery(layout)
    if changed:
        compile_run(layout, seal=True)
    ledger = open_ledger(layout)
    writing = tuple(ledger.writing())
    sealed = {*ledger.sealed, *(writer.stem for writer in writing)}
    contents = read_contents(layout)
    return _told(contents, changed, writing, sealed)


def _told(
    contents: RunContents, changed: bool, writing: tuple[Writer, ...], done: set[str]
) -> Recovery:
    return Recovery(
        changed=changed,
        status=contents.status,
        values=sum(series.rows for series in contents.series),
        facts=len(contents.records),
        torn=contents.torn,
        writing=writing,
        kept=tuple(writer for writer in contents.writers if writer.stem not in done),
    )
