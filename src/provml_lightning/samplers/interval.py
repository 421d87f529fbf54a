"""What happened since a caller last asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provml_lightning.samplers.base import NANO
from provml_lightning.samplers.sampler import WINDOW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provml_lightning.samplers.base import Level, Total
    from provml_lightning.samplers.sampler import Sampler, Snapshot

__all__ = ["Cursor", "Interval"]


@dataclass(frozen=True, slots=True)
class Interval:
    """The time between two calls of one caller.

    Attributes:
        seen: What the caller had been told before, by channel.
        recent: What was known a second before the end, or at the sampler's start if that is later.
        end: What is known now.
    """

    seen: Mapping[str, Total]
    recent: Snapshot
    end: Snapshot

    def billionths(self, name: str) -> int | None:
        """Return what a channel accumulated, in billionths of its unit; None if it is not known."""
        ends, begins = self.end.totals.get(name), self.seen.get(name)
        if ends is None or begins is None or ends.time <= begins.time:
            return None
        return ends.amount - begins.amount

    def amount(self, name: str) -> float | None:
        """Return what a channel accumulated, in its unit; None if it is not known."""
        billionths = self.billionths(name)
        return None if billionths is None else billionths / NANO

    def rate(self, name: str) -> float | None:
        """Return a channel's mean rate, in its unit a second; None if it is not known.

        It is that of the interval, or of the last second where the interval is shorter: counters
        are refreshed too seldom for less.
        """
        ends, begins = self.end.totals.get(name), self.seen.get(name)
        if ends is None:
            return None
        if begins is None or ends.time - begins.time < WINDOW:
            begins = self.recent.totals.get(name, begins)
        if begins is None or ends.time - begins.time <= self.end.about[name].resolution:
            return None
        return (ends.amount - begins.amount) / (ends.time - begins.time)

    def level(self, name: str) -> Level | None:
        """Return what a channel stands at; None if it is not known."""
        return self.end.levels.get(name)

    def source(self, name: str) -> str:
        """Return where a channel's readings come from."""
        return self.end.about[name].source


class Cursor:
    """One caller's place in a sampler's time: its intervals add up to all since the start."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._seen: Mapping[str, Total] = sampler.began.totals

    def advance(self) -> Interval:
        """Return the interval from the last call, or the sampler's start, to now."""
        with self._sampler.lock:
            end = self._sampler.poll()
            recent = self._sampler.before(end.time - WINDOW)
            interval = Interval(self._seen, recent, end)
            seen = dict(self._seen)
            for name, total in end.totals.items():
                # What could not be read, or within one tick of a coarse clock, keeps its place
                # and is in a later interval.
                if name not in seen or total.time > seen[name].time:
                    seen[name] = total
            self._seen = seen
        return interval
