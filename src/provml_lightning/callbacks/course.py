"""A Trainer's way through its stages, as far as a monitor measures them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from provml_lightning.callbacks.cadence import EPOCH, STEP, TRAINING, Cadence

__all__ = ["Course", "Meter", "Moment"]


@dataclass(frozen=True, slots=True)
class Moment:
    """What a value belongs to.

    Attributes:
        context: The stage.
        step: The Trainer's, as it gives it to loggers.
        epoch: The Trainer's.
    """

    context: str
    step: int
    epoch: int


class Meter(Protocol):
    """Measures the parts of a stage that it is told of."""

    def begin(self) -> None:
        """Let a part begin now."""

    def count(self, module: Any, batch: Any) -> None:
        """Take note of a batch that was worked through."""

    def gather(self, context: str) -> None:
        """Put what passed since the last call, of this or ``begin``, with a stage's parts."""

    def tell(self, moment: Moment) -> None:
        """Tell what a stage's parts come to, and begin with none."""

    def close(self) -> None:
        """Let go of everything; a second call does nothing."""


class Course:
    """Decides when meters begin, gather and tell; one course from ``setup`` to ``teardown``.

    A stage in which another one lies, as validation lies in an epoch of training, is measured
    without it. What is gathered is told in any case, at the end if it was not due before.
    """

    def __init__(self, cadence: Cadence, meters: Iterable[Meter]) -> None:
        self._cadence = cadence
        self._meters = tuple(meters)
        self._stage: str | None = None
        self._paused: str | None = None
        self._batches: Counter[str] = Counter()
        self._epochs: Counter[str] = Counter()
        self._last: dict[str, Moment] = {}

    def enter(self, stage: str) -> None:
        """Measure a stage from now on, if it was chosen."""
        if stage in self._cadence.contexts:
            self._stage = stage
            for meter in self._meters:
                meter.begin()

    def leave(self) -> None:
        """Measure nothing from now on."""
        self._stage = None

    def pause(self) -> None:
        """Measure nothing until :meth:`resume`, for another stage begins inside this one."""
        self._paused = self._stage
        if self._stage is not None and (self._is_of(EPOCH) or self._batches[self._stage]):
            self._gather(self._stage)
        self.leave()

    def resume(self) -> None:
        """Go on with the stage that was paused."""
        if self._paused is not None:
            self.enter(self._paused)
        self._paused = None

    def batch(self, moment: Moment, number: int | None, module: Any, batch: Any) -> None:
        """Take note of a batch; ``number`` is that of the step which it ends, from 1 on."""
        stage = moment.context
        if stage != self._stage:
            return
        self._batches[stage] += 1
        self._last[stage] = moment
        for meter in self._meters:
            meter.count(module, batch)
        if number is not None and self._cadence.is_due(STEP, number):
            self._gather(stage)
            self._tell(moment)

    def epoch(self, moment: Moment) -> None:
        """Take note that an epoch of a stage has ended."""
        stage = moment.context
        if stage != self._stage:
            return
        self._epochs[stage] += 1
        number = moment.epoch + 1 if stage == TRAINING else self._epochs[stage]
        if self._is_of(EPOCH):
            self._last[stage] = moment
            self._gather(stage)
        elif self._batches[stage]:
            self._gather(stage)
            self._tell(self._last[stage])
        if self._cadence.is_due(EPOCH, number):
            self._tell(moment)

    def finish(self, now: Callable[[str], Moment]) -> None:
        """Tell what was not told, that of a stage too which was cut off, and let go of all.

        Args:
            now: Returns the moment in which a stage was cut off.
        """
        try:
            if self._stage is not None:
                self._gather(self._stage)
                self._tell(now(self._stage))
            for stage, batches in self._batches.items():
                if batches:
                    self._tell(self._last[stage])
        finally:
            self.close()

    def close(self) -> None:
        """Let go of everything; a second call does nothing."""
        self.leave()
        for meter in self._meters:
            meter.close()

    def _is_of(self, what: str) -> bool:
        return self._cadence.every == what

    def _gather(self, stage: str) -> None:
        for meter in self._meters:
            meter.gather(stage)

    def _tell(self, moment: Moment) -> None:
        self._batches[moment.context] = 0
        for meter in self._meters:
            meter.tell(moment)
