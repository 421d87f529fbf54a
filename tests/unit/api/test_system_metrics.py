from __future__ import annotations

import json
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

import prov4ml
from provml_lightning.domain.catalogue import SYSTEM_METRICS
from provml_lightning.errors import ConfigurationError, SamplerDroppedWarning
from provml_lightning.runtime.sampling import sampling_of
from provml_lightning.samplers.interval import Cursor
from tests.fakes.clock import ManualClock
from tests.fakes.nvml import GPU_IS_LOST, FakeGpu, FakeNvml

if TYPE_CHECKING:
    from pathlib import Path

OF_EVERY_MACHINE = [metric.name for metric in SYSTEM_METRICS if not metric.name.startswith("gpu_")]


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setitem(sys.modules, "amdsmi", None)


def values(folder: Path, name: str) -> list[float]:
    found: list[float] = prov4ml.get_metric(folder, name)["value"].tolist()
    return found


def notes(folder: Path) -> list[str]:
    document: dict[str, Any] = json.loads((folder / f"prov_{folder.name}.json").read_text())
    told = [
        value
        for activity in document["activity"].values()
        for name, value in activity.items()
        if name.endswith(":note")
    ]
    flat = [each for value in told for each in (value if isinstance(value, list) else [value])]
    return [each["$"] if isinstance(each, dict) else each for each in flat]


def test_one_call_keeps_every_metric_that_the_machine_has(tmp_path: Path) -> None:
    with prov4ml.start_run("digits", provenance_save_dir=tmp_path):
        prov4ml.log_system_metrics(prov4ml.Context.TRAINING, step=3)

    folder = tmp_path / "digits_0"
    assert sorted(prov4ml.list_metrics(folder).label) == sorted(OF_EVERY_MACHINE)
    assert prov4ml.get_metric(folder, "cpu_energy", context="Training")["step"].tolist() == [3]
    for name in OF_EVERY_MACHINE:
        (value,) = values(folder, name)
        # An idle machine is busy for none of the hundredths of a second that are counted.
        assert value > 0 or name == "cpu_usage_pct", name
    for name in ("cpu_usage_pct", "ram_usage_pct", "disk_usage_pct"):
        assert values(folder, name)[0] <= 100
    assert values(folder, "ram_usage_gb")[0] < psutil.virtual_memory().total / 1e9


def test_unit_and_source_are_told(tmp_path: Path) -> None:
    with prov4ml.start_run("digits", provenance_save_dir=tmp_path):
        prov4ml.log_system_metrics("Training")

    told = prov4ml.list_metrics(tmp_path / "digits_0").set_index("label")
    for metric in SYSTEM_METRICS:
        if metric.name in OF_EVERY_MACHINE:
            assert told.loc[metric.name, "unit"] == metric.unit
            assert told.loc[metric.name, "source"] in metric.sources


def test_what_is_not_measured_and_what_is_assumed_is_noted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVML_CPU_TDP_W", "65")
    with prov4ml.start_run("digits", provenance_save_dir=tmp_path):
        for step in range(3):
            prov4ml.log_system_metrics("Training", step)

    told = notes(tmp_path / "digits_0")
    gpu = ", ".join(metric.name for metric in SYSTEM_METRICS if metric.name.startswith("gpu_"))
    assert told.count(f"system metrics: not measured: {gpu}") == 1
    assert not any("times)" in text for text in told)


def test_energies_of_short_epochs_add_up_to_the_whole(tmp_path: Path) -> None:
    # carbontracker #33: an epoch shorter than a sample had no energy.
    with prov4ml.start_run("digits", provenance_save_dir=tmp_path) as run:
        sampling = sampling_of(run)
        assert sampling is not None
        all_along = Cursor(sampling.sampler)
        for step in range(20):
            time.sleep(0.005)
            prov4ml.log_system_metrics("Training", step)
        whole = all_along.advance()

    parts = values(tmp_path / "digits_0", "ram_energy")
    assert len(parts) == 20
    assert all(part > 0 for part in parts)
    watts = whole.rate("ram.energy")
    assert watts is not None
    # The last poll is later than the last call by the time of one poll.
    assert sum(parts) <= (whole.amount("ram.energy") or 0)
    assert sum(parts) == pytest.approx(whole.amount("ram.energy"), abs=watts * 0.5)


def test_only_the_first_call_waits(tmp_path: Path) -> None:
    # codecarbon #878: every measurement took half a second.
    prov4ml.start_run("digits", provenance_save_dir=tmp_path)
    prov4ml.log_system_metrics()
    spent = []
    for step in range(200):
        began = time.thread_time()
        prov4ml.log_system_metrics("Training", step)
        spent.append(time.thread_time() - began)
    prov4ml.end_run()
    assert sorted(spent)[197] < 0.01  # [s]; benchmarks hold the budget, this the order of size


def test_a_call_before_any_run_begins_the_first_interval(tmp_path: Path) -> None:
    prov4ml.log_system_metrics("Training", 0)
    with prov4ml.start_run("digits", provenance_save_dir=tmp_path):
        time.sleep(0.3)
        prov4ml.log_system_metrics("Training", 1)

    energy = values(tmp_path / "digits_0", "ram_energy")
    power = values(tmp_path / "digits_0", "ram_power")
    assert len(energy) == 1
    assert energy[0] >= 0.3 * power[0]


def test_a_run_that_does_not_record_measures_nothing(tmp_path: Path) -> None:
    before = threading.active_count()
    with prov4ml.start_run("digits", provenance_save_dir=tmp_path, rank=1):
        prov4ml.log_system_metrics("Training", 0)
        assert threading.active_count() == before


def test_the_thread_ends_with_the_run(tmp_path: Path) -> None:
    before = threading.active_count()
    with prov4ml.start_run("digits", provenance_save_dir=tmp_path):
        prov4ml.log_system_metrics()
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_a_run_after_another_measures_anew(tmp_path: Path) -> None:
    # codecarbon #1328: after a stop nothing was measured any more.
    for _ in range(2):
        with prov4ml.start_run("digits", provenance_save_dir=tmp_path):
            prov4ml.log_system_metrics()
    assert values(tmp_path / "digits_0", "ram_energy")[0] > 0
    assert values(tmp_path / "digits_1", "ram_energy")[0] > 0


def test_a_number_that_is_none_is_refused_at_the_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVML_RAM_POWER_W", "a lot")
    with (
        prov4ml.start_run("digits", provenance_save_dir=tmp_path),
        pytest.raises(ConfigurationError, match="PROVML_RAM_POWER_W='a lot' must be a number"),
    ):
        prov4ml.log_system_metrics()


def test_a_sensor_that_dies_is_one_warning_and_a_note_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = FakeGpu("GPU-a")
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(ManualClock(), gpu))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    prov4ml.start_run("digits", provenance_save_dir=tmp_path)
    prov4ml.log_system_metrics("Training", 0)
    gpu.broken["nvmlDeviceGetTotalEnergyConsumption"] = GPU_IS_LOST
    with pytest.warns(SamplerDroppedWarning, match="gpu.energy"):
        prov4ml.log_system_metrics("Training", 1)
    prov4ml.log_system_metrics("Training", 2)  # and is silent: warnings are errors here
    prov4ml.end_run()

    folder = tmp_path / "digits_0"
    assert (
        sum("gpu.energy (nvml.energy) is not read any more" in note for note in notes(folder)) == 1
    )
    assert len(values(folder, "gpu_energy")) == 1
    assert len(values(folder, "ram_energy")) == 3
    assert "system metrics: NVIDIA: measured: GPU-a" in notes(folder)
