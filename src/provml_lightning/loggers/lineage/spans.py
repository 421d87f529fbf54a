"""When the stages of a ``fit``, ``validate``, ``test`` or ``predict`` ended, as far as they did."""

from __future__ import annotations

import time
import weakref
from typing import Any

from provml_lightning.domain.records import ContextDeclared
from provml_lightning.runtime.run import Run

__all__ = ["Spans", "SpansOf"]


class Spans:
    """Ends of stages, which are told when documents are written: a stage may come again.

    Attributes:
        epochs: When the epoch of each stage that is under way began, by ``time.perf_counter`` [s].
        is_origin_told: Whether it was told from which checkpoint they began.
    """

    def __init__(self) -> None:
        self.epochs: dict[str, float] = {}
        self.is_origin_told = False
        self._ends: dict[str, int | None] = {}

    def begin(self, context: str) -> bool:
        """Take down that a stage is under way; tell whether it begins for the first time."""
        is_first = context not in self._ends
        self._ends[context] = None
        return is_first

    def end(self, context: str | None) -> None:
        """Take down that a stage has ended, if it ever began."""
        if context in self._ends:
            self._ends[context] = time.time_ns()

    def end_all(self) -> None:
        """Take down that whatever is under way has ended."""
        now = time.time_ns()
        self._ends = {context: end or now for context, end in self._ends.items()}

    def tell(self, run: Run) -> None:
        """Tell a run the ends, each once."""
        for context, end in self._ends.items():
            if end is not None:
                run.record(ContextDeclared(time=end, context=context))
        self._ends = {context: end for context, end in self._ends.items() if end is None}


class SpansOf:
    """Those of each Trainer, for one may work within another; none of them is kept alive."""

    def __init__(self) -> None:
        self._all: weakref.WeakKeyDictionary[Any, Spans] = weakref.WeakKeyDictionary()

    def begin(self, trainer: Any) -> None:
        """Take a Trainer as one that begins anew."""
        self._all[trainer] = Spans()

    def of(self, trainer: Any) -> Spans:
        """Return those of a Trainer; one that never began has none."""
        return self._all.setdefault(trainer, Spans())

    def tell(self, run: Run) -> None:
        """Tell a run the ends of all, each once."""
        for spans in list(self._all.values()):
            spans.tell(run)
