from __future__ import annotations

import pytest

from provml_lightning.errors import ConfigurationError
from provml_lightning.samplers.countries import Country, country_of

ITALY = Country("IT", "ITA", "Italy")


@pytest.mark.parametrize("spelled", ["IT", "it", "ITA", "ita", "Italy", "ITALY", " italy ", "380"])
def test_a_country_is_known_by_its_codes_and_names_in_any_case(spelled: str) -> None:
    assert country_of(spelled) == ITALY


@pytest.mark.parametrize(
    ("spelled", "code"),
    [
        ("NA", "NAM"),  # Namibia, which tables read as a missing value
        ("UK", "GBR"),
        ("GB", "GBR"),
        ("EL", "GRC"),
        ("GR", "GRC"),
        ("Côte d'Ivoire", "CIV"),
        ("Bolivia", "BOL"),
        ("Russia", "RUS"),
        ("turkey", "TUR"),
        ("South Korea", "KOR"),
        ("Great Britain", "GBR"),
        ("the Netherlands", "NLD"),
    ],
)
def test_odd_codes_and_names_are_understood(spelled: str, code: str) -> None:
    assert country_of(spelled).alpha3 == code


def test_an_unknown_country_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(ConfigurationError, match=r"'Germny' is no country; .*did you mean Germany"):
        country_of("Germny")


def test_a_part_of_names_is_refused_with_the_names_that_hold_it() -> None:
    with pytest.raises(ConfigurationError, match=r"did you mean .*Korea.*, .*Korea"):
        country_of("Korea")


@pytest.mark.parametrize("spelled", ["XXX", "Q", "world", "EU"])
def test_what_is_no_country_has_no_default(spelled: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{spelled!r} is no country"):
        country_of(spelled)
