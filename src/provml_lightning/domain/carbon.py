"""Where the electricity of a run comes from, as its user told it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from provml_lightning.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CarbonSettings", "Electricity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CarbonSettings:
    """What emissions are made of; what was not told is None.

    Attributes:
        country: Country by ISO code or name.
        region: State, province or bidding zone, where CodeCarbon tells them apart.
        carbon_intensity: Emissions of the electricity [gCO2eq/kWh]; goes before country and region.
        pue: Power usage effectiveness of the data centre: its energy over that of its machines [1].
        disabled: Emissions are not to be told.
    """

    country: str | None = None
    region: str | None = None
    carbon_intensity: float | None = None
    pue: float | None = None
    disabled: bool = False

    def __post_init__(self) -> None:
        """Check what can be checked without tables.

        Raises:
            ConfigurationError: A setting cannot be.
        """
        if not isinstance(self.disabled, bool):
            raise ConfigurationError(f"disable_codecarbon={self.disabled!r} must be True or False")
        for name in ("country", "region"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise ConfigurationError(f"{name}={value!r} must be a text that is not empty")
        set_ = object.__setattr__
        set_(self, "carbon_intensity", _number("carbon_intensity", self.carbon_intensity, 0.0))
        set_(self, "pue", _number("pue", self.pue, 1.0))
        if self.region is not None and self.country is None:
            raise ConfigurationError(f"region={self.region!r} needs its country too")

    def completed(self, environ: Mapping[str, str]) -> CarbonSettings:
        """Return these settings, with what they leave open taken from the environment.

        A place that was told leaves the environment's place and intensity alone, and the reverse.

        Raises:
            ConfigurationError: A variable of ours cannot be.

        Source:
            ``PROVML_COUNTRY``, ``PROVML_REGION``, ``PROVML_CARBON_INTENSITY`` [gCO2eq/kWh],
            ``PROVML_PUE``; never CodeCarbon's own variables and files.
        """
        told = {key: environ.get(f"PROVML_{key.upper()}") or None for key in _TOLD}
        own: dict[str, Any] = {"pue": told.pop("pue") if self.pue is None else self.pue}
        if self.country is None and self.carbon_intensity is None:
            own |= told
        try:
            return replace(self, **own)
        except ConfigurationError as error:
            raise ConfigurationError(f"{error} (one of the variables PROVML_...)") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Electricity:
    """The electricity that a run uses.

    Attributes:
        intensity: Emissions [gCO2eq/kWh]; None where they are not known.
        known_from: Where the intensity is known from.
        country: ISO 3166 alpha-3 code; None where none was told.
        region: State, province or bidding zone; None where none was told.
        pue: Energy of the data centre over that of its machines [1].
    """

    intensity: float | None = None
    known_from: str | None = None
    country: str | None = None
    region: str | None = None
    pue: float = 1.0

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Electricity:
        """Return the electricity that facts of a run tell of."""
        return cls(**{key: facts[name] for key, name in _FACTS.items() if name in facts})

    def facts(self) -> dict[str, str | float]:
        """Return what a run tells of it: nothing where nothing was told."""
        told = {name: getattr(self, key) for key, name in _FACTS.items()}
        if self.pue == 1.0:
            del told["pue"]
        return {name: value for name, value in told.items() if value is not None}

    @property
    def grams_per_joule(self) -> float | None:
        """Emissions for each joule that a machine uses [gCO2eq/J], those of its cooling too."""
        return None if self.intensity is None else self.intensity * self.pue / _JOULES_PER_KWH


_JOULES_PER_KWH = 3_600_000
_FACTS = {
    "intensity": "carbon_intensity",
    "known_from": "carbon_intensity_source",
    "country": "country_iso_code",
    "region": "region",
    "pue": "pue",
}
_TOLD = ("country", "region", "carbon_intensity", "pue")


def _number(name: str, value: Any, least: float) -> float | None:
    if value is None:
        return None
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not least <= number < math.inf:
        raise ConfigurationError(f"{name}={value!r} must be a number from {least:g} up")
    return number
