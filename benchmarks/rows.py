"""What a benchmark says: measurements, a budget, and whether the one keeps to the other."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table.

    Attributes:
        what: What was measured, and at which size.
        measured: One value a round, in ``unit``.
        unit: Unit of the values.
        budget: The most that the median may be, in ``unit``.
        against: What the ratios are to.
        ratios: One ratio a round, to a baseline of the same round.
        ratio_budget: The most that the median ratio may be [1].
    """

    what: str
    measured: Sequence[float]
    unit: str
    budget: float | None = None
    against: str = ""
    ratios: Sequence[float] = ()
    ratio_budget: float | None = None

    @property
    def holds(self) -> bool | None:
        """Whether every budget is kept; None where there is none."""
        checks = [
            statistics.median(values) <= most
            for values, most in ((self.measured, self.budget), (self.ratios, self.ratio_budget))
            if most is not None
        ]
        return all(checks) if checks else None

    def cells(self, *, judge: bool) -> tuple[str, ...]:
        """Return the texts of the line; without ``judge`` the sizes are not the budget's."""
        verdict = {True: "yes", False: "no", None: "–"}[self.holds]
        budgeted = self.holds is not None
        return (
            self.what,
            f"{_spread(self.measured)} {self.unit}",
            _budgets(self),
            _spread(self.ratios) if self.ratios else "–",
            self.against or "–",
            "not judged" if budgeted and not judge else verdict,
        )


def _budgets(row: Row) -> str:
    parts = []
    if row.budget is not None:
        parts.append(f"≤ {row.budget:g} {row.unit}")
    if row.ratio_budget is not None:
        parts.append(f"ratio ≤ {row.ratio_budget:g}")
    return ", ".join(parts) or "–"


def _spread(values: Sequence[float]) -> str:
    """Return median and, where there are several values, the least and the greatest."""
    middle = _short(statistics.median(values))
    if len(values) == 1:
        return middle
    return f"{middle} ({_short(min(values))}–{_short(max(values))})"


def _short(value: float) -> str:
    """Return three digits that matter, never as a power of ten."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004
