"""The Trainer that works now, those within which it does, and how it is met."""

from __future__ import annotations

import weakref
from types import FrameType
from typing import Any

from typing_extensions import override

from provml_lightning.capture.callers import calls_of
from provml_lightning.capture.foreign import attribute
from provml_lightning.loggers.stages import context_of_stage

__all__ = ["Trainers", "is_trainer", "trainer_of_launch", "trainer_of_setup"]


def is_trainer(value: Any) -> bool:
    """Tell whether something is a Trainer; pytorch_lightning has a class of its own."""
    return any(kind.__name__ == "Trainer" for kind in type(value).__mro__)


def trainer_of_setup(caller: FrameType) -> Any:
    """Return the Trainer that asks for a logger's experiment before it begins; None for others.

    Args:
        caller: Who reads ``experiment``.

    Source:
        Lightning 2.6 does so in ``_call_setup_hook(trainer)``, before hyperparameters and module
        are logged; the argument is looked at, nothing is changed.
    """
    asks = caller.f_code.co_name == "_call_setup_hook"
    return caller.f_locals.get("trainer") if asks else None


def trainer_of_launch(frame: FrameType | None) -> Any:
    """Return the Trainer whose processes are being started; None where it is none's.

    Source:
        Lightning 2.6 starts them in ``launch(function, trainer=trainer)`` of a launcher; the
        argument is looked at, nothing is changed.
    """
    for told in calls_of("launch", frame):
        trainer, launcher = told.get("trainer"), told.get("self")
        if is_trainer(trainer) and launcher is not None:
            own = attribute(attribute(trainer, "strategy"), "launcher")
            if own is launcher:
                return trainer
    return None


def _is_at_work(trainer: Any) -> bool:
    """Tell whether a Trainer is within a ``fit``, ``validate``, ``test`` or ``predict``.

    Source:
        Lightning 2.6 leaves ``state.stage`` as it was after a KeyboardInterrupt, but not
        ``state.status``.
    """
    status = attribute(attribute(trainer, "state"), "status")
    is_running = getattr(status, "value", status) == "running"
    return is_running and context_of_stage(trainer) is not None


class Trainers:
    """Follows Trainers, such as one that tests at the end of another's epoch; keeps none alive.

    In another process there is none yet.
    """

    def __init__(self) -> None:
        self._current: weakref.ref[Any] | None = None
        self._outer: list[weakref.ref[Any]] = []

    @override
    def __reduce__(self) -> Any:
        return Trainers, ()

    @property
    def current(self) -> Any:
        """The Trainer that works now or did last; None where there is none."""
        return self._current and self._current()

    def follow(self, trainer: Any) -> None:
        """Take a Trainer as the one that works now."""
        known = self.current
        if known is not trainer and _is_at_work(known):
            self._outer.append(weakref.ref(known))
        self._current = weakref.ref(trainer)

    def part(self) -> bool:
        """Go back to the Trainer within which one has ended; tell whether there is one."""
        while self._outer:
            outer = self._outer.pop()
            if _is_at_work(outer()):
                self._current = outer
                return True
        return False

    def forget(self) -> None:
        """Know of no Trainer."""
        self._current = None
        self._outer.clear()
