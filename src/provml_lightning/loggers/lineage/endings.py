"""When a thread has written what it was given, and whether it could."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from provml_lightning.capture.foreign import attribute

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Endings", "writers_of"]

_DEEPEST = 8  # of those that write for one another


def writers_of(io: Any) -> Iterator[Any]:
    """Yield a ``CheckpointIO``, the one that it wraps, and so on."""
    for _ in range(_DEEPEST):
        if io is None:
            return
        yield io
        io = attribute(io, "checkpoint_io")


class Endings:
    """Tells of each save of a ``CheckpointIO`` when its thread has ended it, and how.

    Args:
        io: The ``CheckpointIO``.

    Source:
        Lightning 2.6's ``AsyncCheckpointIO`` has an executor of one thread, which does what it is
        given in its order, and keeps the last error.
    """

    def __init__(self, io: Any) -> None:
        self._io = io
        self._before: Any = None

    def begin(self) -> None:
        """Take down which error there is before a save, before that is asked for."""
        for one in writers_of(self._io):
            if (executor := _executor_of(one)) is not None:
                with suppress(RuntimeError):  # it takes nothing any more
                    executor.submit(self._note, one)
                return
        found = map(_error_of, writers_of(self._io))  # nothing is under way
        self._before = next((error for error in found if error is not None), None)

    def next(self) -> Future[bool] | None:
        """Return whether the save that was asked for last has failed; None where no thread has it.

        A thread's answers come in the order of the saves.
        """
        for one in writers_of(self._io):
            if (executor := _executor_of(one)) is not None:
                with suppress(RuntimeError):
                    return executor.submit(self._has_failed, one)
        return None

    def _note(self, io: Any) -> None:
        self._before = _error_of(io)

    def _has_failed(self, io: Any) -> bool:
        error = _error_of(io)
        return error is not None and error is not self._before


def _executor_of(io: Any) -> ThreadPoolExecutor | None:
    found = attribute(io, "_executor")
    is_in_order = isinstance(found, ThreadPoolExecutor) and attribute(found, "_max_workers") == 1
    return found if is_in_order else None


def _error_of(io: Any) -> Any:
    return attribute(io, "_error")
