"""The energy and the emissions that ``log_carbon_metrics`` keeps."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

import prov4ml
from provml_lightning.errors import ConfigurationError, RecordDroppedWarning

if TYPE_CHECKING:
    from pathlib import Path

JOULES_PER_KWH = 3_600_000

# What CodeCarbon's own offline tracker tells of two seconds at a power that it is given.
TRACKER = """
import json, time
from codecarbon import OfflineEmissionsTracker
tracker = OfflineEmissionsTracker(country_iso_code="ITA", force_cpu_power=100, pue=1.2,
                                  output_methods=[], log_level="critical", measure_power_secs=1)
tracker.start(); time.sleep(1); tracker.stop()
data = tracker.final_emissions_data
print(json.dumps([data.emissions, data.energy_consumed]))
"""


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose CPU draws 100 W and whose RAM draws 10 W, whatever the machine is."""
    monkeypatch.setenv("PROVML_CPU_TDP_W", "100")
    monkeypatch.setenv("PROVML_CPU_IDLE_FRACTION", "1")
    monkeypatch.setenv("PROVML_RAM_POWER_W", "10")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "prov" / "energy_0"


def values(folder: Path, name: str) -> list[float]:
    return [float(value) for value in prov4ml.get_metric(folder, name)["value"]]


def fact(folder: Path, name: str) -> object:
    return prov4ml.get_parameter(folder, folder.name, name)


def test_energy_adds_up_to_power_times_time(run_folder: Path) -> None:
    with prov4ml.start_run("energy", country="IT"):
        prov4ml.log_carbon_metrics("Training", 0)
        began = time.monotonic()
        for step in range(1, 4):
            time.sleep(0.2)
            prov4ml.log_carbon_metrics("Training", step)
        seconds = time.monotonic() - began

    energy = prov4ml.get_metric(run_folder, "energy_consumed", context="Training")
    assert energy["step"].tolist() == [0, 1, 2, 3]
    told = prov4ml.list_metrics(run_folder).set_index("label")
    assert told.loc["energy_consumed", "unit"] == "J"
    if told.loc["energy_consumed", "source"] == "carbon:model.tdp+model.dimm":  # no counters here
        assert energy["value"][1:].sum() == pytest.approx(110 * seconds, rel=0.05)
    assert (energy["value"] > 0).all()


def test_emissions_are_those_of_the_country_and_the_document_says_which(run_folder: Path) -> None:
    with prov4ml.start_run("energy", country="italy", pue=1.5):
        for step in range(3):
            prov4ml.log_carbon_metrics("Training", step)

    # 330.718 g/kWh is what CodeCarbon's table has for Italy in 2023.
    joules, grams = values(run_folder, "energy_consumed"), values(run_folder, "emissions")
    assert grams == pytest.approx([330.718 * 1.5 * one / JOULES_PER_KWH for one in joules])
    assert fact(run_folder, "country_iso_code") == "ITA"
    assert fact(run_folder, "carbon_intensity") == pytest.approx(330.718)
    assert str(fact(run_folder, "carbon_intensity_source")).startswith("CodeCarbon")
    assert fact(run_folder, "pue") == 1.5


def test_codecarbons_own_tracker_tells_the_same_grams_for_the_same_energy(
    run_folder: Path,
) -> None:
    command = [sys.executable, "-W", "ignore", "-c", TRACKER]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    kilograms, kilowatt_hours = json.loads(told.stdout)
    assert kilowatt_hours > 0

    with prov4ml.start_run("energy", country="ITA", pue=1.2):
        prov4ml.log_carbon_metrics("Training")
    (joules,), (grams,) = values(run_folder, "energy_consumed"), values(run_folder, "emissions")

    # The tracker's kilowatt-hours have the PUE in them, our joules are the machine's.
    ours = grams / (joules * 1.2)
    assert ours * JOULES_PER_KWH == pytest.approx(1000 * kilograms / kilowatt_hours, rel=1e-6)


def test_without_a_country_no_emissions_are_claimed(run_folder: Path) -> None:
    # codecarbon #854, moabb #955: without a network the grams were Canada's.
    with prov4ml.start_run("energy"):
        with pytest.warns(RecordDroppedWarning, match="no emissions: .*Give country="):
            prov4ml.log_carbon_metrics("Training", 0)
        prov4ml.log_carbon_metrics("Training", 1)  # said once

    labels = set(prov4ml.list_metrics(run_folder)["label"])
    assert "energy_consumed" in labels
    assert not labels & {"emissions", "emissions_rate"}
    assert "no emissions: where the electricity comes from" in str(fact(run_folder, "note"))


def test_disabled_emissions_are_said_to_be(run_folder: Path) -> None:
    with prov4ml.start_run("energy", disable_codecarbon=True, country="FR"):
        with pytest.warns(RecordDroppedWarning, match="disable_codecarbon=True"):
            prov4ml.log_carbon_metrics("Training", 0)
        prov4ml.log_carbon_metrics("Training", 1)

    assert "emissions" not in set(prov4ml.list_metrics(run_folder)["label"])
    assert fact(run_folder, "disable_codecarbon") is True
    assert "no emissions: disable_codecarbon=True" in str(fact(run_folder, "note"))


def test_a_strict_run_throws_where_emissions_are_disabled(run_folder: Path) -> None:
    with prov4ml.start_run("energy", disable_codecarbon=True, strict=True):
        for _ in range(2):
            with pytest.raises(ConfigurationError, match="disable_codecarbon=True"):
                prov4ml.log_carbon_metrics("Training")
    assert run_folder.is_dir()


def test_what_cannot_be_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for wrong in ({"country": "Atlantis"}, {"pue": 0.5}, {"country": "IT", "region": "Lazio"}):
        with pytest.raises(ConfigurationError):
            prov4ml.start_run("energy", provenance_save_dir=tmp_path, **wrong)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError):
            prov4ml.ProvMLLogger(save_dir=tmp_path, **wrong)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_the_environment_tells_the_country_of_a_script_that_does_not(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVML_COUNTRY", "CA")
    monkeypatch.setenv("PROVML_REGION", "quebec")
    with prov4ml.start_run("energy"):
        prov4ml.log_carbon_metrics("Training")
    assert fact(run_folder, "region") == "quebec"
    assert fact(run_folder, "carbon_intensity") == pytest.approx(3.94, abs=0.01)
    assert len(values(run_folder, "emissions")) == 1


def test_an_end_inside_the_block_is_one_end_and_counts_nothing_twice(run_folder: Path) -> None:
    # codecarbon #1307: stopped twice, a tracker wrote two rows.
    with prov4ml.start_run("energy", country="IT"):
        prov4ml.log_carbon_metrics("Training")
        prov4ml.end_run()
        (joules,) = values(run_folder, "energy_consumed")
        total = fact(run_folder, "total_energy")
    assert len(values(run_folder, "emissions")) == 1
    assert fact(run_folder, "total_energy") == total
    assert joules <= float(str(total)) < 2 * joules + 110


def test_no_signal_handler_is_another_one_than_before(run_folder: Path) -> None:
    # codecarbon #1310.
    numbers = [signal.SIGINT, signal.SIGTERM]
    before = [signal.getsignal(number) for number in numbers]
    with prov4ml.start_run("energy", country="IT"):
        prov4ml.log_carbon_metrics("Training")
        assert [signal.getsignal(number) for number in numbers] == before
    assert [signal.getsignal(number) for number in numbers] == before
    assert run_folder.is_dir()


def test_the_two_calls_keep_their_own_intervals_and_metrics(run_folder: Path) -> None:
    with prov4ml.start_run("energy", country="IT"):
        prov4ml.log_system_metrics("Training")
        prov4ml.log_carbon_metrics("Training")
        time.sleep(0.2)
        prov4ml.log_carbon_metrics("Training")
        time.sleep(0.2)
        prov4ml.log_system_metrics("Training")

    metrics = prov4ml.list_metrics(run_folder)
    both = metrics[metrics["label"] == "ram_energy"]
    assert both["rows"].tolist() == [2, 2]
    carbon, system = sorted(both["source"], key=lambda source: not source.startswith("carbon:"))
    assert carbon == f"carbon:{system}"

    def joules(name: str, source: str) -> float:
        return float(prov4ml.get_metric(run_folder, name, source=source)["value"].sum())

    assert 0 < joules("ram_energy", carbon) < joules("ram_energy", system)


def test_a_run_that_goes_on_elsewhere_tells_both_places(run_folder: Path) -> None:
    for country in ("FR", "IT"):
        with prov4ml.start_run("energy", use_run_id=0, country=country):
            prov4ml.log_carbon_metrics("Training")
    assert fact(run_folder, "country_iso_code") == "FRA; ITA"
    assert str(fact(run_folder, "carbon_intensity")).startswith("56.039")
