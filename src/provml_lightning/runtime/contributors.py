"""Who has something to tell a run before it is written out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.errors import ProvMLError
from provml_lightning.runtime.faults import warn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Contributors"]


class Contributors:
    """Calls that are made before every snapshot of a run and before its close.

    Whoever gathers in the background, such as a tracked model, tells there what it has. A call
    must return within seconds; one that fails is a warning, since the run is to be written.
    """

    def __init__(self) -> None:
        self._calls: list[tuple[Callable[[], None], bool]] = []

    def add(self, call: Callable[[], None], *, at_close: bool = False) -> None:
        """Make ``call`` before each writing, or before the close alone."""
        self._calls.append((call, at_close))

    def ask(self, *, closing: bool = False) -> None:
        """Make the calls in the order in which they came; those of a close for the last time."""
        for call, at_close in tuple(self._calls):
            if at_close and not closing:
                continue
            try:
                call()
            except ProvMLError as failure:
                warn(str(failure))
        if closing:
            self._calls.clear()
