"""How a metric's values become one."""

from __future__ import annotations

import operator
from collections.abc import Callable
from enum import StrEnum

__all__ = ["Fold", "FoldOperation", "fold_of"]

Fold = Callable[[float, float], float]


class FoldOperation(StrEnum):
    """The operations that the documents name."""

    MAX = "max"
    MIN = "min"
    ADD = "add"
    SUBTRACT = "subtract"


def fold_of(name: str) -> Fold | None:
    """Return the function of a named operation; None for one of the user's own."""
    return _FOLDS.get(name)


def _larger(folded: float, value: float) -> float:
    """Return the larger one; a NaN is no number, and never wins."""
    return folded if value != value or folded >= value else value  # noqa: PLR0124


def _smaller(folded: float, value: float) -> float:
    """Return the smaller one; a NaN is no number, and never wins."""
    return folded if value != value or folded <= value else value  # noqa: PLR0124


_FOLDS: dict[str, Fold] = {
    FoldOperation.MAX: _larger,
    FoldOperation.MIN: _smaller,
    FoldOperation.ADD: operator.add,
    FoldOperation.SUBTRACT: operator.sub,
}
