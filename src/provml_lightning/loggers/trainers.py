"""The Trainer that works now, those within which it does, and how it is met."""

from __future__ import annotations

import weakref
from types import FrameType
from typing import Any

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


class Trainers:
    """Follows Trainers, such as one that tests at the end of another's epoch; keeps none alive."""

    def __init__(self) -> None:
        self._current: weakref.ref[Any] | None = None
        self._outer: list[weakref.ref[Any]] = []

    @property
    def current(self) -> Any:
        """The Trainer that works now or did last; None where there is none."""
        return self._current and self._current()

    def follow(self, trainer: Any) -> None:
        """Take a Trainer as the one that works now."""
        known = self.current
        is_other = known is not None and known is not trainer
        if is_other and context_of_stage(known) is not None:
            self._outer.append(weakref.ref(known))
        self._current = weakref.ref(trainer)

    def part(self) -> bool:
        """Go back to the Trainer within which one has ended; tell whether there is one."""
        if not self._outer:
            return False
        self._current = self._outer.pop()
        return True

    def forget(self) -> None:
        """Know of no Trainer."""
        self._current = None
        self._outer.clear()
