from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from provml_lightning.samplers.interval import Cursor
from provml_lightning.samplers.nvidia import open_nvidia
from provml_lightning.samplers.sampler import Sampler
from tests.fakes.nvml import GPU_IS_LOST, NOT_SUPPORTED, UNKNOWN, FakeGpu, FakeNvml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.fakes.clock import ManualClock

    Install = Callable[[Any], Any]

STEPS = [(0.0, 100.0), (3.0, 300.0), (5.0, 40.0)]


def sampled(
    clock: ManualClock, environ: Mapping[str, str] | None = None, rank: int | None = None
) -> Sampler:
    opened = open_nvidia(environ or {}, rank)
    return Sampler(opened.channels, clock=clock, close=opened.close)


def run_for(sampler: Sampler, clock: ManualClock, seconds: float) -> None:
    for _ in range(round(seconds / 0.5)):
        clock.sleep(0.5)
        sampler.tick()


def test_energy_is_the_integral_of_the_power_exactly(
    clock: ManualClock, installed: Install
) -> None:
    # tirex-tracker #121, codecarbon #286: millijoules were told as joules, kilowatts as watts;
    # zeus #181: counter and integrated power disagreed, so that the source has to be told.
    installed(FakeNvml(clock, FakeGpu("GPU-a", STEPS)))
    sampler = sampled(clock)
    cursor = Cursor(sampler)
    parts = []
    for pause in (1.7, 0.2, 2.6, 3.5):  # 8 s in all
        clock.sleep(pause)
        parts.append(cursor.advance().amount("gpu.energy") or 0.0)

    # 3 s × 100 W + 2 s × 300 W + 3 s × 40 W; the counter counts millijoules.
    assert sum(parts) == pytest.approx(1020.0, abs=0.004)
    assert parts[0] == 170.0
    assert cursor.advance().source("gpu.energy") == "nvml.energy"


def test_a_counter_that_is_refreshed_every_100_ms_loses_nothing(
    clock: ManualClock, installed: Install
) -> None:
    installed(FakeNvml(clock, FakeGpu("GPU-a", STEPS, period=0.1)))
    cursor = Cursor(sampled(clock))
    total = 0.0
    for _ in range(216):
        clock.sleep(0.037)
        total += cursor.advance().amount("gpu.energy") or 0.0
    # 7.992 s: the last refresh was at 7.9 s.
    assert total == pytest.approx(300 + 600 + 2.9 * 40, abs=0.01)


def test_without_a_counter_the_power_is_integrated(clock: ManualClock, installed: Install) -> None:
    # codecarbon #1316, #838, #518: NotSupported was a crash, or 0 kWh.
    broken = {"nvmlDeviceGetTotalEnergyConsumption": NOT_SUPPORTED}
    installed(FakeNvml(clock, FakeGpu("GPU-a", STEPS, broken=broken)))
    sampler = sampled(clock)
    cursor = Cursor(sampler)
    run_for(sampler, clock, 10)
    interval = cursor.advance()
    # The truth is 1100 J; a trapezoid of half a second across each step is off by little.
    assert interval.amount("gpu.energy") == pytest.approx(1100.0, rel=0.02)
    assert interval.source("gpu.energy") == "nvml.power"


def test_without_counter_and_power_there_is_no_energy_and_no_zero(
    clock: ManualClock, installed: Install
) -> None:
    broken = {
        "nvmlDeviceGetTotalEnergyConsumption": NOT_SUPPORTED,
        "nvmlDeviceGetPowerUsage": NOT_SUPPORTED,
    }
    installed(FakeNvml(clock, FakeGpu("GPU-a", broken=broken)))
    opened = open_nvidia({})
    assert "gpu.energy" not in {channel.name for channel in opened.channels}
    assert any(remark.startswith("gpu_power, gpu_energy: ") for remark in opened.remarks)


def test_a_driver_that_was_loaded_anew_makes_no_energy_up(
    clock: ManualClock, installed: Install
) -> None:
    gpu = FakeGpu("GPU-a")
    installed(FakeNvml(clock, gpu))
    sampler = sampled(clock)
    cursor = Cursor(sampler)
    clock.sleep(1)
    sampler.tick()
    gpu.offset = -90.0  # from now on the counter shows less
    clock.sleep(1)
    sampler.tick()
    clock.sleep(1)
    assert cursor.advance().amount("gpu.energy") == 200.0  # the second with the reset is unknown


def test_several_gpus_are_a_sum_a_mean_and_a_maximum(
    clock: ManualClock, installed: Install
) -> None:
    installed(
        FakeNvml(
            clock,
            FakeGpu("GPU-a", memory_watts=20.0, usage=80, temperature=70),
            FakeGpu("GPU-b", [(0.0, 50.0)], memory_watts=10.0, usage=20, used=30 * 10**9),
        )
    )
    sampler = sampled(clock)
    cursor = Cursor(sampler)
    run_for(sampler, clock, 2)
    interval = cursor.advance()

    assert interval.amount("gpu.energy") == 300.0
    assert interval.rate("gpu.energy") == 150.0
    assert interval.rate("gpu.memory_energy") == 30.0
    assert interval.rate("gpu.usage") == 50.0
    assert interval.level("gpu.memory") == (clock.now, 40e9, 160e9)
    assert interval.level("gpu.temperature") == (clock.now, 70.0, None)


@pytest.mark.parametrize(
    "gpu", [FakeGpu("GPU-a"), FakeGpu("GPU-a", memory_watts=9.0, broken={"field": NOT_SUPPORTED})]
)
def test_memory_power_that_is_zero_or_refused_is_absent(
    clock: ManualClock, installed: Install, gpu: FakeGpu
) -> None:
    installed(FakeNvml(clock, gpu))
    opened = open_nvidia({})
    assert "gpu.memory_energy" not in {channel.name for channel in opened.channels}
    assert any(remark.startswith("gpu_memory_power: ") for remark in opened.remarks)


@pytest.mark.parametrize(
    ("setting", "rank", "watts"),
    [
        (None, None, 7.0),
        ("1", None, 2.0),
        ("", None, None),
        ("-1", None, None),
        ("1,0", None, 3.0),
        ("1,0", 0, 2.0),
        ("1,0", 1, 1.0),
        ("1,0", 2, None),
        ("2", 1, 4.0),
        ("GPU-b", None, 2.0),
        ("GPU-c,GPU-a", None, 5.0),
        ("GPU-", None, None),
        ("0,-1,1", None, 1.0),
        ("0,9,1", None, 1.0),
        ("0,0", None, 1.0),
        ("NoDevFiles", None, None),
    ],
)
def test_the_gpus_are_those_that_cuda_would_use(
    clock: ManualClock, installed: Install, setting: str | None, rank: int | None, watts: float
) -> None:
    # codecarbon #567: all GPUs were counted for a job with one.
    gpus = [FakeGpu(f"GPU-{n}", [(0.0, w)]) for n, w in (("a1", 1.0), ("b2", 2.0), ("c3", 4.0))]
    installed(FakeNvml(clock, *gpus))
    environ = {} if setting is None else {"CUDA_VISIBLE_DEVICES": setting}
    cursor = Cursor(sampled(clock, environ, rank))
    clock.sleep(1)
    assert cursor.advance().amount("gpu.energy") == watts


@pytest.mark.parametrize("name", ["MIG-x", "MIG-x,MIG-y", "MIG-GPU-a/7/0"])
def test_parts_of_a_gpu_share_its_energy_which_is_counted_once_and_called_shared(
    clock: ManualClock, installed: Install, name: str
) -> None:
    # zeus #109: a MIG id was a ValueError.
    gpu = FakeGpu("GPU-a", parts=["MIG-x", "MIG-y"])
    installed(FakeNvml(clock, gpu, FakeGpu("GPU-b")))
    sampler = sampled(clock, {"CUDA_VISIBLE_DEVICES": name})
    cursor = Cursor(sampler)
    run_for(sampler, clock, 1)
    interval = cursor.advance()
    assert interval.amount("gpu.energy") == 100.0
    if name.startswith("MIG-x"):
        assert interval.source("gpu.energy") == "nvml.energy.mig-parent"
        assert interval.rate("gpu.usage") is None  # parts have none


def test_memory_is_without_what_the_driver_keeps_for_itself(
    clock: ManualClock, installed: Install
) -> None:
    installed(FakeNvml(clock, FakeGpu("GPU-a")))
    level = sampled(clock).poll().levels["gpu.memory"]
    assert level.value == 10e9


def test_a_gpu_that_is_lost_is_dropped_and_one_that_stumbles_is_not(
    clock: ManualClock, installed: Install
) -> None:
    gpu = FakeGpu("GPU-a")
    installed(FakeNvml(clock, gpu))
    dropped: list[str] = []
    opened = open_nvidia({})
    sampler = Sampler(opened.channels, clock=clock, on_drop=lambda name, *_: dropped.append(name))
    gpu.broken["nvmlDeviceGetTotalEnergyConsumption"] = UNKNOWN
    clock.sleep(0.5)
    sampler.tick()
    assert dropped == []
    gpu.broken["nvmlDeviceGetTotalEnergyConsumption"] = GPU_IS_LOST
    sampler.tick()
    assert dropped == ["gpu.energy"]


def test_a_machine_without_a_driver_says_so_and_a_machine_without_gpus_too(
    clock: ManualClock, installed: Install
) -> None:
    installed(FakeNvml(clock, driver=False))
    assert open_nvidia({}).remarks == ["NVIDIA: nvmlInit: NVML error 12"]
    installed(FakeNvml(clock))
    assert open_nvidia({}).remarks == ["NVIDIA: no GPU that this process may use"]


def test_the_gpus_are_told_by_name_and_one_without_a_name_by_its_id(
    clock: ManualClock, installed: Install
) -> None:
    installed(FakeNvml(clock, FakeGpu("GPU-a"), FakeGpu("GPU-b", name=None)))
    assert open_nvidia({}).hardware == {"gpu": "NVIDIA H100 80GB HBM3 (GPU-a), GPU-b"}
    assert open_nvidia({"CUDA_VISIBLE_DEVICES": ""}).hardware == {}


def test_the_library_is_let_go_as_often_as_it_was_opened(
    clock: ManualClock, installed: Install
) -> None:
    nvml = installed(FakeNvml(clock, FakeGpu("GPU-a")))
    sampler = sampled(clock)
    assert nvml.opened == 1
    sampler.stop()
    sampler.stop()
    assert nvml.opened == 0


def test_a_poll_asks_each_gpu_once(clock: ManualClock, installed: Install) -> None:
    nvml = installed(FakeNvml(clock, FakeGpu("GPU-a"), FakeGpu("GPU-b")))
    sampler = sampled(clock)
    nvml.calls.clear()
    sampler.poll()
    assert nvml.calls == {"nvmlDeviceGetTotalEnergyConsumption": 2}
