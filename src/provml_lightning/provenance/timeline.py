"""When the run and each of its contexts began and ended, as their own records say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provml_lightning.domain.records import Ended, Series, Status

if TYPE_CHECKING:
    from provml_lightning.domain.reading import RunContents

__all__ = ["Interval", "intervals", "last_end"]

_OVER = frozenset({Status.COMPLETED, Status.FAILED, Status.INTERRUPTED})


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of time, UTC [ns]; ``end`` is None where nothing says that it is over."""

    start: int
    end: int | None

    def over(self, *times: int) -> Interval:
        """Return the least interval that holds this one and the times."""
        latest = max(self.end if self.end is not None else self.start, *times)
        return Interval(min(self.start, *times), latest)


def intervals(contents: RunContents) -> dict[str | None, Interval]:
    """Return the interval of the run (None) and of each context, in the order of their starts.

    A context lasts from its first record to its last one. Where the run has not ended, nothing
    has: the ends are None.
    """
    found: dict[str | None, Interval] = {}
    for _, record in contents.records:
        _widen(found, None, record.time)
        context = getattr(record, "context", None)
        if context is not None and not isinstance(record, Series):
            _widen(found, context, record.time)
    for series in contents.series:
        for context in {None, series.name.context}:
            _widen(found, context, series.first_time, series.last_time)
    ordered = sorted(found.items(), key=lambda item: (item[0] is not None, item[1].start))
    if contents.status in _OVER:
        return dict(ordered)
    return {context: Interval(interval.start, None) for context, interval in ordered}


def last_end(contents: RunContents) -> Ended | None:
    """Return how the run ended, as it was told last."""
    ends = [record for _, record in contents.records if isinstance(record, Ended)]
    return ends[-1] if ends and contents.status in _OVER else None


def _widen(found: dict[str | None, Interval], context: str | None, *times: int) -> None:
    known = found.get(context, Interval(times[0], times[0]))
    found[context] = known.over(*times)
