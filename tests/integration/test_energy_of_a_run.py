"""The energy that ``log_carbon_metrics`` keeps, and what it says of emissions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import prov4ml

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose CPU draws 100 W and whose RAM draws 10 W, whatever the machine is."""
    monkeypatch.setenv("PROVML_CPU_TDP_W", "100")
    monkeypatch.setenv("PROVML_CPU_IDLE_FRACTION", "1")
    monkeypatch.setenv("PROVML_RAM_POWER_W", "10")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "prov" / "energy_0"


def test_energy_adds_up_to_power_times_time_and_no_emissions_are_claimed(run_folder: Path) -> None:
    with prov4ml.start_run("energy", disable_codecarbon=True):
        prov4ml.log_carbon_metrics("Training", 0)
        began = time.monotonic()
        for step in range(1, 4):
            time.sleep(0.2)
            prov4ml.log_carbon_metrics("Training", step)
        seconds = time.monotonic() - began

    energy = prov4ml.get_metric(run_folder, "energy_consumed", context="Training")
    assert energy["step"].tolist() == [0, 1, 2, 3]
    (told,) = prov4ml.list_metrics(run_folder).itertuples()
    assert told.unit == "J"
    if told.source == "model.tdp+model.dimm":  # a machine without counters
        assert energy["value"][1:].sum() == pytest.approx(110 * seconds, rel=0.05)
    assert (energy["value"] > 0).all()
    assert "no emissions" in str(prov4ml.get_parameter(run_folder, "energy_0", "note"))


def test_the_two_calls_keep_their_own_intervals(run_folder: Path) -> None:
    with prov4ml.start_run("energy"):
        prov4ml.log_system_metrics("Training")
        prov4ml.log_carbon_metrics("Training")
        time.sleep(0.2)
        prov4ml.log_carbon_metrics("Training")
        time.sleep(0.2)
        prov4ml.log_system_metrics("Training")

    def joules(name: str) -> float:
        return float(prov4ml.get_metric(run_folder, name)["value"].sum())

    system = joules("cpu_energy") + joules("ram_energy")
    assert 0 < joules("energy_consumed") < system
