"""The fact that a piece of code was measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provml_lightning.domain.values import Plain

__all__ = ["PowerMeasure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerMeasure:
    """What a piece of code used while a PowerMeter watched it.

    Attributes:
        time: When it began.
        package: What was used.
        algorithm: What was done with it.
        step: What it was part of.
        seconds: How long it took [s].
        told: What else the caller told: type and shape of the data, parameters, comments.
        measured: Energies [J] and their sources, emissions [gCO2eq], and what they were made of;
            what is not known is not in it.
        error_type: What the code raised, if it did.
    """

    time: int
    package: str
    algorithm: str
    step: str
    seconds: float
    told: Mapping[str, Plain] = field(default_factory=dict)
    measured: Mapping[str, Plain] = field(default_factory=dict)
    error_type: str | None = None
