"""Checkpoints that are about to be written."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass

from provml_lightning.loggers.lineage.places import UNSEEN, Mark, Place
from provml_lightning.loggers.lineage.saving import Saving
from provml_lightning.loggers.lineage.weights import State

__all__ = ["Expected", "Queue", "is_blind"]

_LONGEST_WAIT = 10.0  # for threads that write [s]
_LAST_LOOK = 8  # for a file that was written
_MOST_LOOKS = 3  # for a file in a remote store, while a training runs


@dataclass(slots=True)
class Expected:
    """A checkpoint that was announced.

    Attributes:
        saving: What was said of it.
        weights: Its weights.
        before: What lay at its path until then.
        ending: Whether the thread that writes it has failed; None where no thread does, or did.
        is_written: Whether it is known to have been written.
        has_failed: Whether its save has failed; it may be tried again.
        may_have_failed: Whether an exception came since, which may be that of its save.
        looks: How often it was looked for.
        is_unseen: Whether the last look had no answer.
    """

    saving: Saving
    weights: State
    before: Mark | None = None
    ending: Future[bool] | None = None
    is_written: bool = False
    has_failed: bool = False
    may_have_failed: bool = False
    looks: int = 0
    is_unseen: bool = False

    def end(self, *, failed: bool) -> None:
        """Take how its save has ended."""
        self.has_failed, self.is_written, self.may_have_failed = failed, not failed, False

    def has_ended(self) -> bool:
        """Tell, once, that the thread that writes it has ended."""
        if self.ending is None or not self.ending.done():
            return False
        if not self.ending.cancelled():
            self.end(failed=self.ending.result())
        self.ending = None
        return True

    @property
    def is_elsewhere(self) -> bool:
        """Whether it was written, and was looked for in vain: it does not lie at its path."""
        return self.is_written and self.looks >= _LAST_LOOK

    def may_look(self, place: Place) -> bool:
        """Tell whether to look for it now: each look at a remote store is a request."""
        self.looks += 1
        return not place.is_remote or self.looks <= _MOST_LOOKS


class Queue:
    """What was announced and not seen yet, in the order of the saves."""

    def __init__(self) -> None:
        self._all: list[Expected] = []

    def __iter__(self) -> Iterator[Expected]:
        return iter(tuple(self._all))

    def add(self, one: Expected) -> None:
        """Take one that was announced."""
        self._all.append(one)

    def drop(self, one: Expected) -> None:
        """Expect one no longer."""
        self._all = [other for other in self._all if other is not one]

    def keep_unended(self) -> list[Expected]:
        """Expect no more than what a thread is writing just now; return that."""
        self._all = [one for one in self._all if one.ending is not None]
        return self._all

    def at(self, path: str) -> list[Expected]:
        """Return those that are to come to a path."""
        return [one for one in self._all if one.saving.path == path]

    def doubt(self) -> None:
        """Take all of which nothing is known as perhaps not written: an exception came."""
        for one in self._all:
            one.may_have_failed = one.ending is None and not one.is_written

    def await_end(self, path: str, ending: Future[bool]) -> None:
        """Take what will tell how a thread has ended the save that was announced last."""
        for one in self.at(path)[-1:]:
            one.ending = ending

    def wait(self) -> None:
        """Wait some seconds for the threads that write."""
        wait([one.ending for one in self._all if one.ending is not None], _LONGEST_WAIT)

    def is_last(self, one: Expected) -> bool:
        """Tell whether no other one comes to the same path after it."""
        return any(last is one for last in self.at(one.saving.path)[-1:])


def is_blind(mark: Mark | None) -> bool:
    """Tell whether a mark does not tell a file from another: some stores say its size alone."""
    return mark == UNSEEN or (mark is not None and mark.node == "" and not mark.changed)
