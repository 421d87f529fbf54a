"""Carbon intensity of electricity, from CodeCarbon's tables: without its trackers, no network."""

from __future__ import annotations

import difflib
import importlib.metadata
import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.carbon import Electricity
from provml_lightning.errors import ConfigurationError
from provml_lightning.samplers.countries import country_of

if TYPE_CHECKING:
    from provml_lightning.domain.carbon import CarbonSettings
    from provml_lightning.samplers.countries import Country

__all__ = ["electricity_of"]


@lru_cache(maxsize=32)  # a logger asks when it is made, when its run opens, and again in each part
def electricity_of(settings: CarbonSettings) -> Electricity:
    """Return the electricity that settings speak of; its intensity is None where none is known.

    There is no assumed country and no world's mean: CodeCarbon, asked for a country or a region
    that it does not know, answers with another one's number.

    Raises:
        ConfigurationError: The country or the region is unknown, or has no intensity.

    Source:
        CodeCarbon 3, ``data/private_infra``; the mean over a year.
    """
    pue = 1.0 if settings.pue is None else settings.pue
    country = None if settings.country is None else country_of(settings.country)
    code = country.alpha3 if country else None
    if settings.carbon_intensity is not None:
        told = ("told by the user", code, settings.region)
        return _electricity(settings.carbon_intensity, *told, pue)
    if country is None:
        return Electricity(pue=pue)
    data, version = _tables()
    year = data.get_global_energy_mix_data().get(country.alpha3, {}).get("year")
    if settings.region is None:
        known_from = f"CodeCarbon {version}, {country.name}, {year}"
        return _electricity(_national(data, country), known_from, code, None, pue)
    region = _region(data, country, settings.region)
    known_from = f"CodeCarbon {version}, {region}, {country.name}"
    return _electricity(_intensity(data, country, region), known_from, code, region, pue)


def _electricity(
    intensity: float, known_from: str, country: str | None, region: str | None, pue: float
) -> Electricity:
    return Electricity(
        intensity=intensity, known_from=known_from, country=country, region=region, pue=pue
    )


def _tables() -> tuple[Any, str]:
    """Return CodeCarbon's data, with its logger kept from the user's terminal."""
    logger = logging.getLogger("codecarbon")
    logger.setLevel(logging.CRITICAL)
    from codecarbon.input import DataSource

    logger.setLevel(logging.CRITICAL)  # codecarbon 3.3.2, imported, sets what its variable says
    source: Any = DataSource
    return source(), importlib.metadata.version("codecarbon")


def _national(data: Any, country: Country) -> float:
    intensity = (
        _intensity(data, country, None)
        if country.alpha3 in data.get_global_energy_mix_data()
        else 0.0
    )
    if intensity <= 0:  # codecarbon 3.3.2 has 0 g for one country whose plants nobody reported
        raise ConfigurationError(
            f"no carbon intensity is known for {country.name}; give it with"
            " carbon_intensity=... [gCO2eq/kWh], or leave country out to keep the energy alone"
        )
    return intensity


def _intensity(data: Any, country: Country, region: str | None) -> float:
    """Return grams for one kilowatt-hour [gCO2eq/kWh], as CodeCarbon reckons them."""
    from codecarbon.core.emissions import Emissions
    from codecarbon.core.units import Energy
    from codecarbon.external.geography import GeoMetadata

    place = GeoMetadata(country.alpha3, country_name=country.name, region=region)
    kilograms = Emissions(data).get_private_infra_emissions(Energy.from_energy(kWh=1), place)
    return 1000 * float(kilograms)


def _region(data: Any, country: Country, spelled: str) -> str:
    """Return a region as CodeCarbon spells it."""
    known = _regions(data, country)
    wanted = " ".join(spelled.split()).lower()
    if wanted in known:
        return wanted
    if not known:
        raise ConfigurationError(
            f"region={spelled!r}: CodeCarbon knows no regions of {country.name}; leave region out,"
            " or give carbon_intensity=... [gCO2eq/kWh]"
        )
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.5) or sorted(known)
    raise ConfigurationError(
        f"region={spelled!r} is no region of {country.name} that CodeCarbon knows; did you mean"
        f" {', '.join(near)}?"
    )


def _regions(data: Any, country: Country) -> set[str]:
    match country.alpha3:
        case "USA":
            names = set(data.get_country_emissions_data("usa"))
        case "CAN":
            names = set(data.get_country_energy_mix_data("can"))
        case "CHN":
            provinces = data.get_china_provincial_emissions_data()["data"].values()
            names = {name for province in provinces for name in province["names"]}
        case "SWE" | "NOR" | "FIN":
            zones = data.get_nordic_country_energy_mix_data()["data"]
            names = {zone for zone in zones if zone.startswith(country.alpha2)}
        case _:
            names = set()
    return {name.lower() for name in names if not name.startswith("_")}
