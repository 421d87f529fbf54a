"""Where the weights of each module come from."""

from __future__ import annotations

import os
import weakref
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

__all__ = ["State", "Weights"]

# Python gives one and the same reference to an object as often as it is asked: so it stands for a
# module also where the class of that compares or hashes it in its own way.
_Module = weakref.ref[Any]


@dataclass(slots=True)
class State:
    """Weights at one moment: which were before them, and what went into them since.

    Attributes:
        before: The weights before; None where there were none that anybody knows of.
        data: When the data sets were told that they were trained with since [ns].
        is_trained: Whether they were trained in this process.
        trained_by: The process that lets others train them; None where none does.
        time: When they were told as a version [ns]; None where they were not.
    """

    before: State | None = None
    data: list[int] = field(default_factory=list)
    is_trained: bool = False
    trained_by: int | None = None
    time: int | None = None

    def sources(self) -> list[int] | None:
        """Return when that was told which they come from; None for the model's newest version."""
        found: list[int] = []
        here: State | None = self
        while here is not None and here.time is None:
            if here.trained_by is not None:
                return None
            found, here = here.data + found, here.before
        return found if here is None or here.time is None else [here.time, *found]

    def tell(self, time: int) -> None:
        """Take them as the version that was told at a time."""
        self.time, self.before, self.data = time, None, []


class Weights:
    """Remembers those of every module, as far as this process saw them.

    Args:
        lent: Those that another process had of the first module that is trained here.
    """

    def __init__(self, lent: State | None = None) -> None:
        self._now: list[tuple[_Module, State]] = []
        self._are_several = False
        self._lent = lent

    def begin(self, module: _Module) -> None:
        """Take a module that is trained from no checkpoint: unless it is known, from nothing."""
        now = self._of(module)
        if now is None:
            self._put(module, State(self._lent))
            self._lent = None
        elif now.trained_by not in {None, os.getpid()}:
            self._put(module, State(now.before))

    def lend(self, module: _Module) -> State:
        """Take a module's weights as what other processes make of them; return what they were."""
        before = self._of(module) or State()
        self._put(module, State(before, trained_by=os.getpid()))
        return before

    def load(self, module: _Module, version: int | None) -> None:
        """Take a module's weights as those of the version of a time; None where nobody knows it."""
        before = None if version is None else State(time=version)
        self._put(module, State(before))

    def feed(self, module: _Module, data: Collection[int]) -> None:
        """Take that a module is trained with data sets that were told at some times."""
        if (now := self._of(module)) is not None:
            now.data += data
            now.is_trained = True

    def save(self, module: _Module) -> State:
        """Return a module's weights as they are now, which may become a version."""
        now = self._of(module) or State()
        if now.trained_by is not None and self._are_several:
            now = State()  # which of them the model's newest version is of, nobody here has seen
        self._put(module, State(now, is_trained=now.is_trained))
        return now

    def _of(self, module: _Module) -> State | None:
        return next((now for known, now in self._now if known is module), None)

    def _put(self, module: _Module, now: State) -> None:
        self._are_several |= any(known is not module for known, _ in self._now)
        others = [one for one in self._now if one[0] is not module and one[0]() is not None]
        self._now = [*others, (module, now)]
