from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from provml_lightning.samplers import machine
from provml_lightning.samplers.machine import Share, open_machine
from provml_lightning.samplers.rapl import open_rapl
from tests.fakes.kernel import Zone
from tests.fakes.nvml import FakeGpu, FakeNvml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from provml_lightning.samplers.base import Opened
    from tests.fakes.clock import ManualClock

PROCESS = {"process.cpu", "process.ram", "process.read", "process.written"}


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setitem(sys.modules, "amdsmi", None)


def names(opened: Opened) -> set[str]:
    for close in opened.close:
        close()
    return {channel.name for channel in opened.channels}


def sources(opened: Opened) -> dict[str, str]:
    return {channel.name: channel.about.source for channel in opened.channels}


def test_a_machine_without_sensors_has_models_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "open_rapl", lambda _: open_rapl(tmp_path / "none"))
    opened = open_machine(tmp_path, Share(), {"PROVML_CPU_TDP_W": "65"})
    assert sources(opened)["cpu.energy"] == "model.tdp"
    assert sources(opened)["ram.energy"] == "model.dimm"
    assert any("65 W under full load (PROVML_CPU_TDP_W)" in text for text in opened.remarks)
    assert any("RAPL" in text for text in opened.remarks)
    assert any("NVIDIA: nvidia-ml-py is not installed" in text for text in opened.remarks)
    names(opened)


def test_a_sensor_goes_before_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Zone(tmp_path, "intel-rapl:0", "package-0", 0)
    monkeypatch.setattr(machine, "open_rapl", lambda _: open_rapl(tmp_path))
    opened = open_machine(tmp_path, Share(), {})
    assert sources(opened)["cpu.energy"] == "rapl"
    assert sources(opened)["ram.energy"] == "model.dimm"  # this package tells nothing of it
    assert not any("model.tdp" in text for text in opened.remarks)
    names(opened)


def test_another_rank_of_the_machine_measures_its_process_and_its_gpu_alone(
    tmp_path: Path, clock: ManualClock, installed: Callable[[Any], Any]
) -> None:
    nvml = installed(FakeNvml(clock, FakeGpu("GPU-a"), FakeGpu("GPU-b", [(0.0, 70.0)])))
    opened = open_machine(tmp_path, Share(machine=False, gpu=1), {})
    found = names(opened)
    assert {name for name in found if not name.startswith("gpu.")} <= PROCESS
    assert "gpu.energy" in found
    assert "NVIDIA: measured: GPU-b" in opened.remarks
    assert "CPU, RAM and disk are measured by local rank 0 alone" in opened.remarks
    assert nvml.opened == 0


def test_no_program_is_started_and_no_scheduler_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # codecarbon #447, #335: scontrol was called at every measurement, or was missing.
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a program was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    environ = {"SLURM_JOB_ID": "1", "SLURM_MEM_PER_NODE": "4096", "PATH": ""}
    assert names(open_machine(tmp_path, Share(), environ)) >= {"cpu.energy", "ram", "ram.energy"}


def test_the_environment_s_powercap_folder_is_the_one_that_is_read(tmp_path: Path) -> None:
    Zone(tmp_path, "intel-rapl:0", "package-0", 0)
    opened = open_machine(tmp_path, Share(), {"PROVML_POWERCAP": str(tmp_path)})
    assert sources(opened)["cpu.energy"] == "rapl"
    names(opened)
