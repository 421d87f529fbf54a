"""A real GPU and its real driver."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

import prov4ml
from provml_lightning.samplers.interval import Cursor
from provml_lightning.samplers.nvidia import open_nvidia
from provml_lightning.samplers.sampler import Sampler

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.gpu


def test_energy_by_the_counter_is_near_the_power_that_was_read() -> None:
    opened = open_nvidia(os.environ)
    sampler = Sampler(opened.channels, close=opened.close)
    sampler.start()
    cursor = Cursor(sampler)
    time.sleep(3)
    interval = cursor.advance()
    sampler.stop()

    power = interval.rate("gpu.energy")
    assert power is not None
    assert 5 < power < 1500 * max(len(opened.remarks), 1)  # [W]
    usage = interval.rate("gpu.usage")
    assert usage is None or 0 <= usage <= 100


def test_a_poll_takes_less_than_half_a_millisecond_a_gpu() -> None:
    opened = open_nvidia(os.environ)
    sampler = Sampler(opened.channels, close=opened.close)
    gpus = opened.remarks[0].count("GPU-")
    spent = []
    for _ in range(200):
        began = time.perf_counter()
        sampler.poll()
        spent.append(time.perf_counter() - began)
    sampler.stop()
    assert sorted(spent)[100] < 50e-6 + 0.5e-3 * gpus


def test_a_run_keeps_the_gpu_s_metrics(tmp_path: Path) -> None:
    with prov4ml.start_run("gpu", provenance_save_dir=tmp_path):
        time.sleep(1)
        prov4ml.log_system_metrics("Training", 0)
        time.sleep(1)
        prov4ml.log_system_metrics("Training", 1)

    folder = tmp_path / "gpu_0"
    assert prov4ml.get_metric(folder, "gpu_energy")["value"].iloc[-1] > 5
    assert 0 < prov4ml.get_metric(folder, "gpu_memory_usage_pct")["value"].iloc[-1] <= 100
    assert 10 < prov4ml.get_metric(folder, "gpu_temperature_c")["value"].iloc[-1] < 110
