"""What happened since a caller last asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from provml_lightning.samplers.base import NANO, Total
from provml_lightning.samplers.sampler import WINDOW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provml_lightning.samplers.base import Level
    from provml_lightning.samplers.sampler import Sampler, Snapshot

__all__ = ["Cursor", "Interval"]


@dataclass(frozen=True, slots=True)
class Interval:
    """The time between two calls of one caller, or several such times as if they were one.

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
        passed = self.passed(name)
        return None if passed is None else passed.amount

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

    def after(self, earlier: Interval) -> Interval:
        """Return this interval and an earlier one in one, without the time between them."""
        seen = {**self.seen, **earlier.seen}
        for name in self.end.totals.keys() & self.seen.keys():
            begins, passed = self.seen[name], earlier.passed(name) or Total(0, 0)
            seen[name] = Total(begins.time - passed.time, begins.amount - passed.amount)
        end = replace(
            self.end,
            totals={**earlier.end.totals, **self.end.totals},
            about={**earlier.end.about, **self.end.about},
        )
        return Interval(seen, self.recent, end)

    def passed(self, name: str) -> Total | None:
        """Return how much time passed for a channel, and how much it accumulated meanwhile."""
        ends, begins = self.end.totals.get(name), self.seen.get(name)
        if ends is None or begins is None or ends.time <= begins.time:
            return None
        return Total(ends.time - begins.time, ends.amount - begins.amount)


class Cursor:
    """One caller's place in a sampler's time: its intervals add up to all since the start.

    Who measures parts of the time, such as the stages of a training, takes these alone; the rest
    is in the next interval of who asks for all.

    Attributes:
        turns: How often it was asked [1].
    """

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._seen: Mapping[str, Total] = sampler.began.totals
        self._left: Interval | None = None
        self.turns = 0

    def advance(self) -> Interval:
        """Return all, from the last call or the sampler's start to now, that nobody took."""
        with self._sampler.lock:
            interval, left = self.take(), self._left
            self._left = None
        return interval if left is None else interval.after(left)

    def leave(self) -> None:
        """Let :meth:`take` begin now; what has passed is for :meth:`advance`."""
        with self._sampler.lock:
            self._left = self.advance()

    def take(self) -> Interval:
        """Return the interval from the last call, whichever it was, to now."""
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
            self.turns += 1
        return interval
