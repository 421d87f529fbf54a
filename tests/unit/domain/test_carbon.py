from __future__ import annotations

import pytest

from provml_lightning.domain.carbon import CarbonSettings, Electricity
from provml_lightning.errors import ConfigurationError

VARIABLES = {
    "PROVML_COUNTRY": "IT",
    "PROVML_CARBON_INTENSITY": "120",
    "PROVML_PUE": "1.3",
    "CODECARBON_PUE": "9",
    "CODECARBON_COUNTRY_ISO_CODE": "FRA",
}


def test_the_environment_fills_in_what_was_not_told() -> None:
    assert CarbonSettings().completed(VARIABLES) == CarbonSettings(
        country="IT", carbon_intensity=120.0, pue=1.3
    )


def test_a_place_that_was_told_leaves_the_environments_place_and_intensity_alone() -> None:
    told = CarbonSettings(country="France")
    assert told.completed(VARIABLES) == CarbonSettings(country="France", pue=1.3)


def test_codecarbons_own_variables_change_nothing() -> None:
    foreign = {name: value for name, value in VARIABLES.items() if name.startswith("CODE")}
    assert CarbonSettings().completed(foreign) == CarbonSettings()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pue": 0.9}, "pue=0.9 must be a number from 1 up"),
        ({"disabled": "false"}, "disable_codecarbon='false' must be True or False"),
        ({"pue": True}, "pue=True must be a number"),
        ({"carbon_intensity": -1}, "carbon_intensity=-1 must be a number from 0 up"),
        ({"carbon_intensity": float("nan")}, "carbon_intensity=nan must be a number"),
        ({"carbon_intensity": float("inf")}, "carbon_intensity=inf must be a number"),
        ({"carbon_intensity": 10**400}, "carbon_intensity=1000"),
        ({"carbon_intensity": "low"}, "carbon_intensity='low' must be a number"),
        ({"country": " "}, "country=' ' must be a text"),
        ({"country": 39}, "country=39 must be a text"),
        ({"region": "ontario"}, "region='ontario' needs its country"),
    ],
)
def test_what_cannot_be_is_refused_with_its_value(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{message}"):
        CarbonSettings(**wrong)  # type: ignore[arg-type]


def test_a_variable_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"carbon_intensity='much'.*PROVML_"):
        CarbonSettings().completed({"PROVML_CARBON_INTENSITY": "much"})


def test_a_kilowatt_hour_emits_the_intensity_times_the_pue() -> None:
    factor = Electricity(intensity=500.0, pue=1.2).grams_per_joule
    assert factor is not None
    assert factor * 3_600_000 == pytest.approx(600.0)


def test_an_unknown_intensity_makes_no_emissions() -> None:
    assert Electricity(pue=1.5).grams_per_joule is None


def test_electricity_is_told_as_facts_and_understood_again() -> None:
    told = Electricity(intensity=3.9, known_from="a table", country="CAN", region="quebec", pue=2.0)
    assert Electricity.of(told.facts()) == told
    assert Electricity().facts() == {}
    assert Electricity.of({"host_name": "node1"}) == Electricity()
