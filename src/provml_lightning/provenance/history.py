"""What was told several times: the same again, changed, or otherwise by another rank."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from provml_lightning.domain.records import Record

__all__ = ["History", "content", "histories"]

R = TypeVar("R", bound="Record")


@dataclasses.dataclass(frozen=True, slots=True)
class History(Generic[R]):
    """One thing from its first state to its last; a state is all records that told it alike.

    ``rank`` is None for the lowest rank that told of it, and for every other that told the same;
    a rank of which something else is true has a history of its own.
    """

    rank: int | None
    states: Sequence[list[R]]

    def mark(self, identifier: str) -> str:
        """Return an id of this history's own; no encoded name ends in what is put behind it."""
        return identifier if self.rank is None else f"{identifier}~rank{self.rank}"


def histories(
    told: Iterable[tuple[int, R]], identity: Callable[[R], Hashable]
) -> Iterator[History[R]]:
    """Return the history of everything that was told, in the order of its first word.

    Of what several ranks told differently, the lowest rank's history comes last, so that whoever
    reads on takes that one.
    """
    things: dict[Hashable, dict[int, list[list[R]]]] = {}
    for rank, record in told:
        states = things.setdefault(identity(record), {}).setdefault(rank, [])
        if states and content(states[-1][0]) == content(record):
            states[-1].append(record)
        else:
            states.append([record])
    for by_rank in things.values():
        if len(by_rank) == 1:
            yield History(None, *by_rank.values())
        else:
            yield from _merged(by_rank)


def content(record: Record) -> str:
    """Return all that a record says but when; NaN is NaN, and 1 is neither 1.0 nor True."""
    return repr(dataclasses.replace(record, time=0))


def _merged(by_rank: dict[int, list[list[R]]]) -> Iterator[History[R]]:
    lowest = min(by_rank)
    main = by_rank[lowest]
    others = [
        rank for rank in sorted(by_rank) if rank != lowest and not _joins(main, by_rank[rank])
    ]
    for rank in reversed(others):
        yield History(rank, by_rank[rank])
    yield History(None, main)


def _joins(main: list[list[R]], other: list[list[R]]) -> bool:
    """Put a rank's records to those of the lowest, if as far as it came it told the same."""
    pairs = list(zip(main, other, strict=False))
    if len(other) > len(main) or any(content(a[0]) != content(b[0]) for a, b in pairs):
        return False
    for state, records in pairs:
        state.extend(records)
    return True
