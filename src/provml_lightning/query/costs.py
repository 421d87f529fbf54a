"""What a run or a part of it used, as its document sums it up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from provml_lightning.query.literals import number_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["CostFacts", "costs_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFacts:
    """What a run, or a part of it, used of something, and where that is known from."""

    name: str
    amount: float
    unit: str
    source: str


def costs_of(told: Mapping[str, Any], beginning: str = "") -> Iterator[CostFacts]:
    """Yield the sums among the facts of an activity: what has a unit and a source beside it.

    Args:
        told: The facts by names without their prefix.
        beginning: What the names of sums begin with.
    """
    for name, unit in told.items():
        quantity = name.removesuffix("_unit")
        if quantity == name or not name.startswith(beginning):
            continue
        amount, source = number_of(told.get(quantity)), told.get(f"{quantity}_source")
        if amount is not None and source is not None:
            yield CostFacts(
                name=quantity.removeprefix(beginning),
                amount=amount,
                unit=str(unit),
                source=str(source),
            )
