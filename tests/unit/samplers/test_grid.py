from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from provml_lightning.domain.carbon import CarbonSettings, Electricity
from provml_lightning.errors import ConfigurationError
from provml_lightning.samplers.grid import electricity_of


# Published with CodeCarbon's tables [gCO2eq/kWh].
@pytest.mark.parametrize(
    ("country", "intensity"),
    [("ITA", 330.72), ("FR", 56.04), ("Germany", 380.95), ("pol", 661.93), ("NOR", 30.08)],
)
def test_a_countrys_intensity_is_codecarbons(country: str, intensity: float) -> None:
    found = electricity_of(CarbonSettings(country=country))
    assert found.intensity == pytest.approx(intensity, abs=0.01)


@pytest.mark.parametrize(
    ("country", "region", "intensity"),
    [
        ("CA", "Quebec", 3.94),
        ("Canada", "ontario", 64.72),
        ("SE", "SE3", 27.0),
        ("USA", "California", 179.06),
        ("CN", "beijing", 555.4),
    ],
)
def test_a_regions_intensity_goes_before_its_countrys(
    country: str, region: str, intensity: float
) -> None:
    found = electricity_of(CarbonSettings(country=country, region=region))
    assert found.intensity == pytest.approx(intensity, abs=0.01)
    assert found.region == region.lower()


def test_without_a_country_nothing_is_assumed() -> None:
    assert electricity_of(CarbonSettings(pue=1.4)) == Electricity(pue=1.4)


def test_an_intensity_of_the_users_goes_before_every_table() -> None:
    found = electricity_of(CarbonSettings(country="fr", carbon_intensity=0.0))
    assert found == Electricity(intensity=0.0, known_from="told by the user", country="FRA")


def test_the_source_names_codecarbon_with_version_place_and_year() -> None:
    found = electricity_of(CarbonSettings(country="IT"))
    assert found.known_from is not None
    assert found.known_from.startswith("CodeCarbon 3.")
    assert found.known_from.endswith(", Italy, 2023")


def test_a_country_whose_table_has_zero_grams_is_refused() -> None:
    # Central African Republic: CodeCarbon would tell that computing there emits nothing.
    with pytest.raises(ConfigurationError, match="no carbon intensity is known for Central Afric"):
        electricity_of(CarbonSettings(country="CAF"))


def test_a_country_that_the_table_lacks_is_refused_and_not_given_the_worlds_mean() -> None:
    with pytest.raises(ConfigurationError, match="no carbon intensity is known for Andorra"):
        electricity_of(CarbonSettings(country="AD"))


def test_an_unknown_region_is_refused_with_the_nearest_and_not_given_its_countrys(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(ConfigurationError, match=r"region='Ontarrio' is no region.*ontario"):
        electricity_of(CarbonSettings(country="CAN", region="Ontarrio"))
    assert caplog.records == []


def test_a_region_of_a_country_without_regions_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="knows no regions of Italy"):
        electricity_of(CarbonSettings(country="IT", region="Lazio"))


def test_a_zone_of_another_country_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="region='NO1' is no region of Sweden"):
        electricity_of(CarbonSettings(country="SE", region="NO1"))


def test_nothing_is_said_on_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    electricity_of(CarbonSettings(country="US", region="texas"))
    assert capfd.readouterr() == ("", "")
    assert not logging.getLogger("codecarbon").isEnabledFor(logging.ERROR)


@pytest.mark.parametrize("level", ["DEBUG", "bogus"])
def test_codecarbons_own_variables_say_nothing_either(level: str) -> None:
    script = (
        "from provml_lightning.domain.carbon import CarbonSettings\n"
        "from provml_lightning.samplers.grid import electricity_of\n"
        "electricity_of(CarbonSettings(country='IT'))\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "CODECARBON_LOG_LEVEL": level},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert (told.stdout, told.stderr) == ("", "")
