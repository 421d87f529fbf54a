"""What a count says: how much, in which unit, how it was had, and whether it is whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

__all__ = ["FLOP", "MAC", "Count", "total"]

FLOP = "FLOP"
MAC = "MAC"


@dataclass(frozen=True, slots=True)
class Count:
    """What one forward pass computes, or several.

    Attributes:
        amount: Floating-point operations, or multiply-accumulates.
        unit: ``"FLOP"`` or ``"MAC"``; a MAC is two FLOPs.
        method: ``"flops.meta"``, ``"flops.real"``, or the package that counted MACs.
        missing: Operations whose work is not in the amount, for there is no formula for it.
        sampled: It was reckoned from a part of the batches.
        by_values: The work depended on the values in the tensors, not on their shapes alone.
        remark: What more the reader must know.
    """

    amount: int | Fraction
    unit: str
    method: str
    missing: frozenset[str] = frozenset()
    sampled: bool = False
    by_values: bool = False
    remark: str | None = None

    @property
    def source(self) -> str:
        """What goes into the column ``source``: the method, and what is to be known of it."""
        marks = {"incomplete": bool(self.missing), "sampled": self.sampled}
        return ".".join([self.method, *(mark for mark, holds in marks.items() if holds)])

    def times(self, number: int | Fraction, *, sampled: bool = False) -> Count:
        """Return what as much work, done ``number`` times, comes to."""
        return replace(self, amount=self.amount * number, sampled=self.sampled or sampled)


def total(counts: Iterable[Count]) -> Count:
    """Return the sum of counts in the same unit; each mark of one is a mark of the sum."""
    first, *others = counts
    for each in others:
        first = Count(
            first.amount + each.amount,
            first.unit,
            max(first.method, each.method),  # one real forward pass makes the sum a real one
            first.missing | each.missing,
            first.sampled or each.sampled,
            first.by_values or each.by_values,
            first.remark or each.remark,
        )
    return first
