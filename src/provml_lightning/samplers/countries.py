"""Countries by any of their names."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from provml_lightning.errors import ConfigurationError

__all__ = ["Country", "country_of"]

# What people write and ISO 3166 does not: reserved codes, and names that are or were in use.
_ALSO = {
    "uk": "GB", "great britain": "GB", "britain": "GB", "el": "GR", "america": "US",
    "the united states": "US", "russia": "RU", "turkey": "TR", "holland": "NL",
    "the netherlands": "NL", "brunei": "BN", "ivory coast": "CI", "cape verde": "CV",
    "burma": "MM", "macau": "MO", "macedonia": "MK", "palestine": "PS", "swaziland": "SZ",
    "uae": "AE", "vatican": "VA",
}  # fmt: skip
_LEAST = 4  # letters of a text that is looked for within names; less may be a code


@dataclass(frozen=True, slots=True)
class Country:
    """A country of ISO 3166-1.

    Attributes:
        alpha2: Code of two letters, ``"IT"``.
        alpha3: Code of three letters, ``"ITA"``.
        name: English short name.
    """

    alpha2: str
    alpha3: str
    name: str


def country_of(spelled: str) -> Country:
    """Return the country of a code or a name, in any case; ``UK`` and ``EL`` are understood.

    Raises:
        ConfigurationError: There is none; the message holds the nearest names.

    Source:
        The tables of pycountry, ISO 3166-1.
    """
    import pycountry

    wanted = " ".join(spelled.split())
    try:
        found = pycountry.countries.lookup(_ALSO.get(wanted.lower(), wanted))
    except LookupError:
        near = _nearest(wanted, [country.name for country in pycountry.countries])
        meant = f"; did you mean {', '.join(near)}?" if near else ""
        raise ConfigurationError(
            f"{spelled!r} is no country; give an ISO 3166 code such as 'IT' or 'ITA', or its"
            f" English name{meant}"
        ) from None
    return Country(found.alpha_2, found.alpha_3, getattr(found, "common_name", found.name))


def _nearest(wanted: str, names: list[str]) -> list[str]:
    """Return up to three names that hold a text, or else that are like it."""
    holding = [name for name in names if len(wanted) >= _LEAST and wanted.lower() in name.lower()]
    return holding[:3] or difflib.get_close_matches(wanted.title(), names, n=3, cutoff=0.5)
