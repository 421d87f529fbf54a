"""What was worked through in the parts of a stage, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.utilities.data import extract_batch_size

from provml_lightning.callbacks.course import Moment
from provml_lightning.callbacks.sinks import Sink
from provml_lightning.errors import SamplerReadError
from provml_lightning.samplers.flops import Count, await_device, count_batch, total
from provml_lightning.samplers.system import Value

__all__ = ["Work", "WorkMeter"]

_CLOCK = "perf_counter"
_LABELS = {"FLOP": "flops", "MAC": "macs"}


@dataclass(frozen=True, slots=True)
class Work:
    """What was worked through in a part of a stage.

    Attributes:
        seconds: Time on the wall [s].
        batches: Batches [1].
        samples: Samples in them [1]; None where a batch does not tell how many it has.
        counts: What each batch's forward pass computes; None where one was not counted.
    """

    seconds: float = 0.0
    batches: int = 0
    samples: int | None = 0
    counts: tuple[Count, ...] | None = ()

    def plus(self, other: Work) -> Work:
        """Return both together."""
        unknown = self.samples is None or other.samples is None
        samples = None if unknown else (self.samples or 0) + (other.samples or 0)
        uncounted = self.counts is None or other.counts is None
        counts = None if uncounted else _summed((*(self.counts or ()), *(other.counts or ())))
        return Work(self.seconds + other.seconds, self.batches + other.batches, samples, counts)

    def values(self) -> list[Value]:
        """Return what it comes to, and how fast it went."""
        told: list[Value] = []
        if self.counts:
            (count,) = _summed(self.counts)
            label, amount = _LABELS[count.unit], float(count.amount)
            told.append(Value(label, amount, count.unit, count.source))
            if self.seconds > 0:
                speed, source = amount / self.seconds, f"{count.source}+{_CLOCK}"
                told.append(Value(f"{label}_per_second", speed, f"{count.unit}/s", source))
        if self.seconds > 0 and self.batches:
            told.append(Value("batches_per_second", self.batches / self.seconds, "1/s", _CLOCK))
            if self.samples is not None:
                speed = self.samples / self.seconds
                told.append(Value("samples_per_second", speed, "1/s", _CLOCK))
        return told


class WorkMeter:
    """Work by stage.

    Args:
        sinks: What takes the values.
        engine: What counts a batch.
        place: A device to wait for where a part begins and ends; None: none.
    """

    def __init__(self, sinks: Sequence[Sink], engine: str, place: Any) -> None:
        self._sinks = sinks
        self._engine = engine
        self._place = place
        self._since = time.perf_counter()
        self._part = Work()
        self._held: dict[str, Work] = {}

    def begin(self) -> None:
        """Let a part begin now."""
        self._since, self._part = self._now(), Work()

    def count(self, module: Any, batch: Any) -> None:
        """Take note of a batch; the time that this takes does not count."""
        began = time.perf_counter()
        counts = self._counted(module, batch)
        self._part = self._part.plus(Work(0.0, 1, _samples(batch), counts))
        self._since += time.perf_counter() - began

    def gather(self, context: str) -> None:
        """Put the part with a stage's work, and begin the next."""
        since, self._since = self._since, self._now()
        part = replace(self._part, seconds=self._since - since)
        self._held[context] = self._held.get(context, Work()).plus(part)
        self._part = Work()

    def tell(self, moment: Moment) -> None:
        """Tell what a stage's work comes to."""
        work = self._held.pop(moment.context, Work())
        for sink in self._sinks:
            sink.keep(work.values(), moment)

    def close(self) -> None:
        """Let go of everything."""
        self._held.clear()

    def _now(self) -> float:
        if self._place is not None:
            await_device(self._place)
        return time.perf_counter()

    def _counted(self, module: Any, batch: Any) -> tuple[Count, ...] | None:
        try:
            found = count_batch(module, batch, self._engine)
        except SamplerReadError as error:
            for sink in self._sinks:
                sink.excuse_count("flops", error)
            return None
        for sink in self._sinks:
            sink.note_count(_LABELS[found.unit], found)
        return (found,)


def _summed(counts: tuple[Count, ...]) -> tuple[Count, ...]:
    return (total(counts),) if counts else ()


def _samples(batch: Any) -> int | None:
    """Return the samples in a batch, found as Lightning finds them; None where it finds none."""
    try:
        return extract_batch_size(batch)
    except (MisconfigurationException, RecursionError):
        return None
