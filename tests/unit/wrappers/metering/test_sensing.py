from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import pytest

from prov4ml import PowerMeter
from provml_lightning.errors import SamplerDroppedWarning
from provml_lightning.wrappers.metering import sensing
from provml_lightning.wrappers.metering.sensing import sensors_of
from tests.fakes.clock import ManualClock
from tests.fakes.kernel import Zone
from tests.fakes.nvml import FakeGpu, FakeNvml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Rows = Callable[..., list[dict[str, str]]]

JOULE = 1_000_000  # [µJ]


@pytest.fixture
def powercap(tmp_path: Path) -> dict[str, Zone]:
    root = tmp_path / "powercap"
    return {
        "package": Zone(root, "intel-rapl:0", "package-0", 123_456 * JOULE),
        "core": Zone(root, "intel-rapl:0/intel-rapl:0:0", "core", 7 * JOULE),
        "dram": Zone(root, "intel-rapl:0/intel-rapl:0:1", "dram", 70 * JOULE),
    }


def test_the_counters_of_a_given_powercap_folder_are_read(
    powercap: dict[str, Zone], tmp_path: Path, rows: Rows
) -> None:
    # CarbonAI told the counter itself, 34 322 mWh for 44, and crashed before that.
    meter = PowerMeter(
        location="FR", is_online=False, cpu_power_log_path=str(tmp_path / "powercap")
    )
    with meter("p", "a"):
        powercap["package"].set((123_456 + 360) * JOULE)
        powercap["core"].set((7 + 180) * JOULE)
        powercap["dram"].set((70 + 36) * JOULE)
    (row,) = rows()
    assert row["Cumulative Package Energy (mWh)"] == "100.0"
    assert row["Cumulative IA Energy (mWh)"] == "50.0"
    assert row["Cumulative DRAM Energy (mWh)"] == "10.0"
    assert row["CPU energy source"] == row["DRAM energy source"] == "rapl"


def test_what_was_counted_between_two_measures_is_in_neither(
    powercap: dict[str, Zone], tmp_path: Path, rows: Rows
) -> None:
    meter = PowerMeter(
        location="FR", is_online=False, cpu_power_log_path=str(tmp_path / "powercap")
    )
    with meter("p", "first"):
        powercap["package"].set((123_456 + 36) * JOULE)
    powercap["package"].set((123_456 + 9_000) * JOULE)
    with meter("p", "second"):
        powercap["package"].set((123_456 + 9_072) * JOULE)
    assert [float(row["Package energy (J)"]) for row in rows()] == [36.0, 72.0]


def test_of_two_measures_one_in_the_other_both_have_what_was_counted_in_them(
    powercap: dict[str, Zone], tmp_path: Path, rows: Rows
) -> None:
    meter = PowerMeter(
        location="FR", is_online=False, cpu_power_log_path=str(tmp_path / "powercap")
    )
    with meter("p", "outer"):
        powercap["package"].set((123_456 + 10) * JOULE)
        with meter("p", "inner"):
            powercap["package"].set((123_456 + 30) * JOULE)
        powercap["package"].set((123_456 + 60) * JOULE)
    told = {row["Algorithm"]: float(row["Package energy (J)"]) for row in rows()}
    assert told == {"inner": 20.0, "outer": 60.0}


def test_a_counter_that_vanishes_leaves_its_cell_empty_and_the_others_whole(
    powercap: dict[str, Zone], tmp_path: Path, rows: Rows
) -> None:
    meter = PowerMeter(
        location="FR", is_online=False, cpu_power_log_path=str(tmp_path / "powercap")
    )
    with meter("p", "a"):
        powercap["package"].set("nonsense")
        powercap["dram"].set((70 + 36) * JOULE)
    (row,) = rows()
    assert row["Cumulative Package Energy (mWh)"] == row["CO2 emitted (gCO2e)"] == ""
    assert row["Cumulative DRAM Energy (mWh)"] == "10.0"


def test_a_counter_that_cannot_be_read_at_the_beginning_tells_nothing_of_what_was_before(
    powercap: dict[str, Zone], tmp_path: Path, rows: Rows
) -> None:
    meter = PowerMeter(
        location="FR", is_online=False, cpu_power_log_path=str(tmp_path / "powercap")
    )
    with meter("p", "outer"):
        powercap["package"].set("nonsense")
        with meter("p", "inner"):
            powercap["package"].set((123_456 + 30) * JOULE)
    told = {row["Algorithm"]: row["Package energy (J)"] for row in rows()}
    assert told == {"inner": "", "outer": "30.0"}


def test_a_gpu_s_energy_is_the_integral_of_its_power(
    monkeypatch: pytest.MonkeyPatch, rows: Rows
) -> None:
    clock = ManualClock()
    gpus = [FakeGpu("GPU-a", [(0.0, 100.0), (3.0, 300.0)]), FakeGpu("GPU-b", [(0.0, 10.0)])]
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(clock, *gpus))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with PowerMeter(carbon_intensity=50, pue=1.5, is_online=False)("torch", "ResNet18"):
        sum(range(3_000_000))
        clock.sleep(5)
    (row,) = rows()
    # 3 s × 100 W + 2 s × 300 W, and 5 s × 10 W of the other
    assert float(row["GPU energy (J)"]) == pytest.approx(950.0, abs=0.004)
    assert float(row["Cumulative GPU Energy (mWh)"]) == pytest.approx(950 / 3.6, abs=0.002)
    assert row["GPU energy source"] == "nvml.energy"
    assert row["Total Elapsed GPU Time (sec)"] == row["Duration (sec)"]
    parts = ("Process CPU energy (J)", "Process DRAM energy (J)", "GPU energy (J)")
    emitted = sum(float(row[name]) for name in parts) / 3_600_000 * 50 * 1.5
    assert float(row["CO2 emitted (gCO2e)"]) == pytest.approx(emitted, rel=1e-9)


def test_a_channel_that_is_dropped_is_not_tried_in_the_next_measure() -> None:
    sensors = sensors_of()
    cursor = sensors.begin()
    with pytest.warns(SamplerDroppedWarning, match="ram.energy.*is not read any more: gone"):
        sensors._drop("ram.energy", "model.dimm", OSError("gone"))  # noqa: SLF001  as a sampler does
    sensors.end(cursor)
    found = sensors.end(sensors.begin())
    assert found.ram is None
    assert found.cpu is not None


@pytest.mark.parametrize(
    ("local", "gpu", "machine"), [("0", 0, True), ("1", 1, False)], ids=["first", "second"]
)
def test_the_rows_of_ranks_may_be_added(
    monkeypatch: pytest.MonkeyPatch, rows: Rows, local: str, gpu: int, machine: bool
) -> None:
    asked = []
    opened = sensing.open_machine

    def noted(folder: Path, share: sensing.Share, environ: dict[str, str]) -> object:
        asked.append(share.gpu)
        return opened(folder, share, environ)

    monkeypatch.setattr(sensing, "open_machine", noted)
    for name, value in {"RANK": local, "LOCAL_RANK": local, "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    with PowerMeter(location="FR", is_online=False)("p", "a"):
        sum(range(3_000_000))
    (row,) = rows()
    assert asked == [gpu]
    assert row["Rank"] == local
    assert bool(row["Cumulative Package Energy (mWh)"]) is machine
    assert bool(row["Cumulative DRAM Energy (mWh)"]) is machine
    assert float(row["CO2 emitted (gCO2e)"]) > 0


def test_many_threads_share_one_sampler(rows: Rows) -> None:
    meter = PowerMeter(location="FR", is_online=False)
    names = []

    def work(number: int) -> None:
        for turn in range(5):
            with meter("p", f"{number}.{turn}"):
                names.extend(thread.name for thread in threading.enumerate())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert "provml-sampler" in names
    assert "provml-sampler" not in {thread.name for thread in threading.enumerate()}
    assert len({row["Algorithm"] for row in rows()}) == 40
    assert all(float(row["Package energy (J)"]) >= 0 for row in rows())


def test_measuring_loads_neither_torch_nor_a_gpu_s_library_for_nothing() -> None:
    with PowerMeter(location="FR", is_online=False)("p", "a"):
        pass
    assert sys.modules["pynvml"] is None
