"""Checkpoints that earlier processes of a run told of."""

from __future__ import annotations

from collections.abc import Iterator

from provml_lightning.domain.records import FileDeleted, ModelVersion
from provml_lightning.domain.redaction import MASK
from provml_lightning.storage.journal import read_journal
from provml_lightning.storage.layout import RunLayout

__all__ = ["told_before"]


def told_before(layout: RunLayout, source: str) -> dict[str, ModelVersion]:
    """Return what was told last of the checkpoints that should still lie there, by their paths.

    A run that one process alone wrote to has none. Where a path's secrets are masked, nobody can
    look there again.

    Raises:
        StorageError: A journal cannot be read.
    """
    if len(list(layout.journal_files())) < 2:  # noqa: PLR2004  our own
        return {}
    found: dict[str, ModelVersion] = {}
    for record in sorted(_told(layout), key=lambda one: one.time):
        if isinstance(record, FileDeleted):
            found.pop(record.path, None)
        elif record.source == source and (file := record.stored or record.original):
            found.pop(file.path, None)  # the order is that in which they were made
            found[file.path] = record
    return {path: told for path, told in found.items() if MASK not in path}


def _told(layout: RunLayout) -> Iterator[ModelVersion | FileDeleted]:
    for path in layout.journal_files():
        lines = read_journal(path)
        for record in lines.records if lines else ():
            if isinstance(record, (ModelVersion, FileDeleted)):
                yield record
