"""When a monitor tells what it measured, and of which stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from provml_lightning.domain.context import PREDICTION, Context, canonical_context
from provml_lightning.errors import ConfigurationError

__all__ = ["EPOCH", "STAGES", "STEP", "TESTING", "TRAINING", "VALIDATION", "Cadence"]

STEP = "step"
EPOCH = "epoch"

TRAINING = Context.TRAINING.value
VALIDATION = Context.VALIDATION.value
TESTING = Context.TESTING.value
STAGES = (TRAINING, VALIDATION, TESTING, PREDICTION)


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often, and of what.

    Attributes:
        every: ``"step"`` or ``"epoch"``.
        every_n: Each nth of these is told of [1].
        contexts: The stages that are measured.
    """

    every: str
    every_n: int
    contexts: frozenset[str]

    @classmethod
    def of(cls, every: str, every_n: int, contexts: Sequence[str]) -> Cadence:
        """Return the cadence that a user asks for.

        Raises:
            ConfigurationError: An argument cannot work.
        """
        if every not in (STEP, EPOCH):
            raise ConfigurationError(f"every={every!r} is unknown; choose 'step' or 'epoch'")
        if type(every_n) is not int or every_n < 1:
            raise ConfigurationError(f"every_n={every_n!r} must be a whole number from 1 up")
        asked = [contexts] if isinstance(contexts, str) else list(contexts)
        chosen = frozenset(_stage(each) for each in asked)
        if not chosen:
            raise ConfigurationError(f"contexts={contexts!r} is empty; name one of {_choices()}")
        return cls(str(every), every_n, chosen)

    def is_due(self, what: str, number: int) -> bool:
        """Tell whether something is to be told after the step or epoch of a number, from 1 on."""
        return what == self.every and number % self.every_n == 0


def _stage(asked: object) -> str:
    known = {stage.lower(): stage for stage in STAGES}
    stage = known.get(str(canonical_context(asked)).lower())
    if stage is None:
        raise ConfigurationError(f"contexts: {asked!r} is no stage; choose from {_choices()}")
    return stage


def _choices() -> str:
    return ", ".join(map(repr, STAGES))
