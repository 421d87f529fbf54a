from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from prov4ml import PowerMeter
from provml_lightning.domain.carbon import Electricity
from provml_lightning.samplers.countries import country_of
from provml_lightning.wrappers.metering.columns import COLUMNS, INHERITED, Entry, row_of
from provml_lightning.wrappers.metering.energies import Energies
from provml_lightning.wrappers.metering.labels import Labels, Whose
from provml_lightning.wrappers.metering.whereabouts import Place

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Rows = Callable[..., list[dict[str, str]]]

# As CarbonAI wrote it, byte for byte.
HEADER = (
    b"Datetime,Country,Platform,User ID,ISO,Project name,Program name,Client name,"
    b"Total Elapsed CPU Time (sec),Total Elapsed GPU Time (sec),Cumulative Package Energy (mWh),"
    b"Cumulative IA Energy (mWh),Cumulative GPU Energy (mWh),Cumulative DRAM Energy (mWh),"
    b"Cumulative process CPU Energy (mWh),Cumulative process DRAM Energy (mWh),PUE,"
    b"CO2 emitted (gCO2e),Package,Algorithm,Algorithm's parameters,Data type,Data shape,Comment,"
    b"Step"
)
FRANCE = Place(
    Electricity(intensity=50.0, known_from="told by the user", country="FRA", pue=1.5),
    country_of("FR"),
)


def entry(energies: Energies, place: Place = FRANCE) -> Entry:
    return Entry(
        labels=Labels("p", "a", "other", "", "", "", ""),
        whose=Whose("project", "--", "--", "ann"),
        place=place,
        energies=energies,
        began=1_767_323_045_000_000_000,  # 2026-01-02 03:04:05 UTC
        seconds=2.0,
    )


def test_the_file_begins_with_the_twenty_five_columns(tmp_path: Path) -> None:
    with PowerMeter(location="FR", is_online=False)("p", "a"):
        pass
    header = (tmp_path / "emissions.csv").read_bytes().split(b"\r\n")[0]
    assert header.startswith(HEADER + b",")
    assert len(INHERITED) == 25
    assert len(set(COLUMNS)) == len(COLUMNS)


def test_a_milliwatt_hour_is_three_point_six_joules_and_emissions_are_of_the_process() -> None:
    energies = Energies(
        cpu=360.0, cores=180.0, ram=36.0, gpu=72.0, process_cpu=90.0, process_ram=18.0
    )
    row = row_of(entry(energies))
    assert row["Cumulative Package Energy (mWh)"] == 100.0
    assert row["Cumulative IA Energy (mWh)"] == 50.0
    assert row["Cumulative GPU Energy (mWh)"] == 20.0
    assert row["Cumulative DRAM Energy (mWh)"] == 10.0
    assert row["Cumulative process CPU Energy (mWh)"] == 25.0
    assert row["Cumulative process DRAM Energy (mWh)"] == 5.0
    assert row["PUE"] == 1.5
    # 1.5 × (25 + 5 + 20) mWh × 50 g/kWh = 75e-6 kWh × 50 g/kWh
    assert row["CO2 emitted (gCO2e)"] == pytest.approx(0.00375, rel=1e-12)
    assert row["Process CPU energy (J)"] == 90.0
    assert (row["ISO"], row["Country"]) == ("FR", "France")
    assert row["Started (UTC)"] == "2026-01-02T03:04:05.000000+00:00"


def test_what_was_not_measured_is_empty_and_not_zero() -> None:
    row = row_of(entry(Energies()))
    empty = {name for name, cell in row.items() if cell is None}
    assert {name for name in COLUMNS if "nergy" in name or "Elapsed" in name} <= empty
    assert "CO2 emitted (gCO2e)" in empty
    assert 0 not in [cell for name, cell in row.items() if name != "Rank"]


def test_without_an_intensity_there_are_energies_and_no_emissions() -> None:
    place = Place(Electricity(pue=1.58))
    row = row_of(entry(Energies(cpu=360.0, process_cpu=90.0), place))
    assert row["Cumulative process CPU Energy (mWh)"] == 25.0
    assert row["CO2 emitted (gCO2e)"] is None
    assert row["Country"] is row["ISO"] is None


def test_without_the_process_s_share_there_are_no_emissions() -> None:
    row = row_of(entry(Energies(cpu=360.0, ram=36.0, process_ram=18.0, gpu=1.0)))
    assert row["CO2 emitted (gCO2e)"] is None


def test_a_hundred_watts_for_a_time_are_its_seconds_times_a_hundred_joules(rows: Rows) -> None:
    meter = PowerMeter(is_online=False, location="FR", pue=1.5, carbon_intensity=50)
    spent = 0
    with meter("p", "a"):
        while spent < 3_000_000:
            spent += 1
    (row,) = rows()
    seconds = float(row["Duration (sec)"])
    cell = {name: float(text) for name, text in row.items() if text and "nergy (" in name}
    # Reading the sensors takes a millisecond or so, which is measured too.
    assert 100 * seconds <= cell["Package energy (J)"] <= 100 * seconds + 5
    assert cell["Cumulative Package Energy (mWh)"] == cell["Package energy (J)"] / 3.6
    assert cell["Package energy (J)"] == pytest.approx(10 * cell["DRAM energy (J)"], rel=1e-6)
    assert 0 < cell["Process CPU energy (J)"] <= cell["Package energy (J)"]
    assert 0 < cell["Process DRAM energy (J)"] < cell["DRAM energy (J)"]
    used = cell["Process CPU energy (J)"] + cell["Process DRAM energy (J)"]
    emitted = used / 3_600_000 * 50 * 1.5
    assert float(row["CO2 emitted (gCO2e)"]) == pytest.approx(emitted, rel=1e-9)
    assert (row["CPU energy source"], row["DRAM energy source"]) == ("model.tdp", "model.dimm")
    assert row["GPU energy source"] == row["Cumulative GPU Energy (mWh)"] == ""
    assert row["Total Elapsed CPU Time (sec)"] == row["Duration (sec)"]
    assert row["Total Elapsed GPU Time (sec)"] == ""
