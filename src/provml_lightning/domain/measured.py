"""What a run cost: told by samplers while it ran, added up when its documents are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provml_lightning.domain.values import Plain

__all__ = ["Measured", "Total"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one process's sampler saw from its start to now; its next word replaces this one.

    Attributes:
        time: When it was told [ns].
        since: When the sampler started [ns]; with the rank, which sampler it is.
        energies: By device, ``cpu``, ``gpu`` and ``ram``, what is known [J].
        sources: Where each of them is from.
        hardware: Each of them by name.
        electricity: What is known of where the energy comes from, as facts of a run.
        emissions: Those of the energies, where the electricity's are known [gCO2eq].
    """

    time: int
    since: int
    energies: Mapping[str, Plain] = field(default_factory=dict)
    sources: Mapping[str, Plain] = field(default_factory=dict)
    hardware: Mapping[str, Plain] = field(default_factory=dict)
    electricity: Mapping[str, Plain] = field(default_factory=dict)
    emissions: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The sum of a quantity over a context, as far as one sampler's time goes.

    Attributes:
        quantity: What it is, such as ``energy``.
        context: Of which context; None: of the run itself, outside every context.
        amount: In the unit.
        unit: Unit of the amount.
        source: Where the added values are from.
        rank: Whose process logged them.
        since: When the sampler started, which was that process's latest then [ns]; 0: there was
            none.
    """

    quantity: str
    context: str | None
    amount: float
    unit: str
    source: str
    rank: int = 0
    since: int = 0
