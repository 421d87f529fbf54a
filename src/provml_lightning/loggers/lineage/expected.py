"""A checkpoint that is about to be written."""

from __future__ import annotations

from dataclasses import dataclass

from provml_lightning.loggers.lineage.places import UNSEEN, Mark, Place
from provml_lightning.loggers.lineage.saving import Saving

__all__ = ["Expected", "is_blind"]

_MOST_LOOKS = 3  # for a file in a remote store, while a training runs


@dataclass(slots=True)
class Expected:
    """A checkpoint that was announced.

    Attributes:
        saving: What was said of it.
        before: What lay at its path until then.
        has_failed: Whether its save has failed; it may be tried again.
        may_have_failed: Whether an exception came since, which may be that of its save.
        looks: How often it was looked for.
        is_unseen: Whether the last look had no answer.
    """

    saving: Saving
    before: Mark | None = None
    has_failed: bool = False
    may_have_failed: bool = False
    looks: int = 0
    is_unseen: bool = False

    def may_look(self, place: Place) -> bool:
        """Tell whether to look for it now: each look at a remote store is a request."""
        self.looks += 1
        return not place.is_remote or self.looks <= _MOST_LOOKS


def is_blind(mark: Mark | None) -> bool:
    """Tell whether a mark does not tell a file from another: some stores say its size alone."""
    return mark == UNSEEN or (mark is not None and mark.node == "" and not mark.changed)
