"""The notes of a run, in short."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.domain.catalogue import OF_SYSTEM

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["shortened"]

_MOST = 2
# What is not measured on a machine is many sentences, of which none is about what was logged.
_MARK = f"{OF_SYSTEM}: "


def shortened(notes: Sequence[str]) -> tuple[tuple[str, ...], int]:
    """Return the notes but those on what a machine does not measure, and how many these are.

    Up to two of them are notes like all others; those of other topics always are.
    """
    others = tuple(note for note in notes if not note.startswith(_MARK))
    count = len(notes) - len(others)
    return (tuple(notes), 0) if count <= _MOST else (others, count)
