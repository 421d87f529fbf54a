"""When the run and each of its contexts began and ended, as their own records say."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from provml_lightning.domain.records import (
    ContextDeclared,
    Dataset,
    Ended,
    FileUsed,
    Opened,
    Parameter,
    Record,
    Series,
    Status,
)
from provml_lightning.provenance.nesting import outer_contexts

if TYPE_CHECKING:
    from provml_lightning.domain.reading import RunContents

__all__ = ["Interval", "first_opened", "intervals", "last_end"]

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

    def nearest(self, time: int) -> int:
        """Return the moment of this interval that is nearest to a time."""
        late = time if self.end is None else min(time, self.end)
        return max(self.start, late)


def intervals(contents: RunContents) -> dict[str | None, Interval]:
    """Return the interval of the run (None) and of each context, in the order of their starts.

    The run lasts from its first fact to its last, a context likewise, its metrics' values
    included. A value's time is the caller's to give and may be of any year: outside the run it
    moves no bound. What is to go into a context that is declared later, such as the data set of a
    stage, waits for its beginning. Where the run has not ended, nothing has: the ends are None.
    """
    told: dict[str | None, list[int]] = defaultdict(list)
    declared = _first_declared(contents)
    for _, record in contents.records:
        told[None].append(record.time)
        context = getattr(record, "context", None)
        waits = _is_input(record) and record.time < declared.get(context, record.time)
        if context is not None and not isinstance(record, Series) and not waits:
            told[context].append(record.time)
        if isinstance(record, ContextDeclared) and record.parent is not None:
            told[record.parent].append(record.time)
    found = {context: Interval(min(times), max(times)) for context, times in told.items()}
    over = contents.status in _OVER
    run = found.get(None)
    span = run and (run if over else Interval(run.start, None))
    for context, times in _times_of_values(contents).items():
        if context is not None:
            _widen(found, context, *(span.nearest(time) if span else time for time in times))
        if run is None:
            _widen(found, None, *times)
    _cover_parts(found, contents)
    ordered = sorted(found.items(), key=lambda item: (item[0] is not None, item[1].start))
    if over:
        return dict(ordered)
    return {context: Interval(interval.start, None) for context, interval in ordered}


def _is_input(record: Record) -> bool:
    """Tell whether a fact is of something that goes into its context."""
    if isinstance(record, Parameter):
        return not record.is_output
    return isinstance(record, (Dataset, FileUsed)) or bool(getattr(record, "is_input", False))


def _first_declared(contents: RunContents) -> dict[str | None, int]:
    """Return when each context was declared first, of those that were."""
    found: dict[str | None, int] = {}
    for _, record in contents.records:
        if isinstance(record, ContextDeclared):
            found[record.context] = min(record.time, found.get(record.context, record.time))
    return found


def _times_of_values(contents: RunContents) -> dict[str | None, tuple[int, int]]:
    """Return the first and the last time of a value in each context."""
    found: dict[str | None, tuple[int, int]] = {}
    for series in contents.series:
        first, last = found.get(series.name.context, (series.first_time, series.last_time))
        earliest, latest = min(first, series.first_time), max(last, series.last_time)
        found[series.name.context] = earliest, latest
    return found


def first_opened(contents: RunContents) -> Opened | None:
    """Return how the run began: the first word of its lowest rank, or None where that is lost."""
    told = [(rank, record) for rank, record in contents.records if isinstance(record, Opened)]
    return min(told, key=lambda item: item[0])[1] if told else None


def last_end(contents: RunContents) -> Ended | None:
    """Return how the run ended, as it was told last."""
    ends = [record for _, record in contents.records if isinstance(record, Ended)]
    return ends[-1] if ends and contents.status in _OVER else None


def _cover_parts(found: dict[str | None, Interval], contents: RunContents) -> None:
    """Let a context last as long as every context that is a part of it."""
    outer = {context: declared.parent for context, declared in outer_contexts(contents).items()}
    for context, parent in outer.items():
        part, above, seen = found[context], parent, {context}
        latest = part.start if part.end is None else part.end
        while above is not None and above not in seen:
            found[above] = found[above].over(part.start, latest)
            seen.add(above)
            above = outer.get(above)


def _widen(found: dict[str | None, Interval], context: str | None, *times: int) -> None:
    known = found.get(context, Interval(times[0], times[0]))
    found[context] = known.over(*times)
