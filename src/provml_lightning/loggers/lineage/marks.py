"""Which checkpoints are the best and which the last."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from provml_lightning.capture.foreign import attribute
from provml_lightning.loggers.lineage.kept import Kept
from provml_lightning.loggers.lineage.saving import best_and_last

if TYPE_CHECKING:
    from provml_lightning.domain.values import Plain

__all__ = ["Marks"]


class Marks:
    """Remembers what the ModelCheckpoints say, while they say it.

    A Trainer may be gone before the run ends, and another one that only tests knows of none.
    """

    def __init__(self) -> None:
        self._listed: list[tuple[str, str]] = []
        self._keeps_last = False

    def hear(self, callbacks: Collection[Any]) -> None:
        """Learn what the ModelCheckpoints of a Trainer say now."""
        pairs = [pair for callback in callbacks if any(pair := best_and_last(callback))]
        self._listed = pairs or self._listed
        self._keeps_last |= any(attribute(callback, "save_last") for callback in callbacks)

    def of(
        self, kept: Mapping[str, Kept], shown: Callable[[str], str], *, trains: bool
    ) -> dict[str, dict[str, Plain]]:
        """Return the marks of every checkpoint that was made, as ModelCheckpoint has them.

        Where none is kept as the last, that is the one that was made last.

        Args:
            kept: The checkpoints, in the order in which they were made.
            shown: Returns how a path is told.
            trains: Whether this process trained. Where another one did, the callbacks here know
                little of it, and what was marked there stays so.
        """
        best = {shown(path) for path, _ in self._listed if path}
        last = {shown(path) for _, path in self._listed if path}
        made = [name for name, known in kept.items() if not known.told.is_input]
        if not trains:
            best |= _marked(kept, "is_best")
            last = last or (_marked(kept, "is_last") if self._keeps_last else last)
        last = last or set(made[-1:])
        marked = {"is_best": best, "is_last": last}
        return {
            name: {mark: True for mark, those in marked.items() if name in those} for name in made
        }


def _marked(kept: Mapping[str, Kept], mark: str) -> set[str]:
    return {name for name, known in kept.items() if known.told.attributes.get(mark)}
