"""Where the electricity of a run comes from: its settings, completed by the environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from provml_lightning.domain.carbon import Electricity

if TYPE_CHECKING:
    from provml_lightning.domain.carbon import CarbonSettings
    from provml_lightning.domain.values import Plain

__all__ = ["electricity_facts", "known_electricity"]


def electricity_facts(settings: CarbonSettings) -> dict[str, Plain]:
    """Return what is true of a run's electricity, and whether emissions are not to be told.

    Raises:
        ConfigurationError: No carbon intensity is known for the place that was told, or a variable
            of ours cannot be.
    """
    facts: dict[str, Plain] = dict(known_electricity(settings).facts())
    return {**facts, "disable_codecarbon": True} if settings.disabled else facts


def known_electricity(settings: CarbonSettings) -> Electricity:
    """Return the electricity that settings and environment speak of.

    Raises:
        ConfigurationError: As :func:`electricity_facts` does.
    """
    told = settings.completed(os.environ)
    if told.country is None and told.carbon_intensity is None:
        return Electricity(pue=told.pue or 1.0)
    from provml_lightning.samplers.grid import electricity_of  # whose tables take a while to load

    return electricity_of(told)
