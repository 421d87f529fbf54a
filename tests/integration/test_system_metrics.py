"""Several real processes on one machine: it is measured once, and they end in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

import prov4ml

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import sys, time
import prov4ml
run = prov4ml.start_run("gang", provenance_save_dir=sys.argv[1], use_run_id=0,
                        collect_all_processes=True)
for step in range(3):
    time.sleep(0.1)
    prov4ml.log_system_metrics("Training", step)
    prov4ml.log_metric("alive", 1.0, "Training", step)
prov4ml.end_run()
"""

FORKING = """
import os, sys, time
import prov4ml
prov4ml.start_run("forked", provenance_save_dir=sys.argv[1], use_run_id=0,
                  collect_all_processes="RANK" in os.environ)
if sys.argv[2] == "after": prov4ml.log_system_metrics("Training", 0)
child = os.fork()
prov4ml.log_system_metrics("Training", 1 if child else 2)
if child == 0:
    prov4ml.end_run()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
prov4ml.end_run()
"""

ENDLESS = """
import sys, time
import prov4ml
prov4ml.start_run("endless", provenance_save_dir=sys.argv[1])
prov4ml.log_system_metrics("Training", 0)
print("ready", flush=True)
if sys.argv[2] == "signal": time.sleep(60)
print(time.time(), flush=True)
"""


def start(program: str, *arguments: str, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_ranks_of_a_machine_do_not_count_it_twice(tmp_path: Path) -> None:
    # codecarbon #544: N ranks reported the machine N times.
    ranks = [
        start(PROGRAM, str(tmp_path), RANK=f"{n}", LOCAL_RANK=f"{n}", WORLD_SIZE="2")
        for n in (0, 1)
    ]
    for rank in ranks:
        _, errors = rank.communicate(timeout=100)
        assert rank.returncode == 0, errors

    folder = tmp_path / "gang_0"
    assert set(prov4ml.get_metric(folder, "alive")["rank"]) == {0, 1}
    for name in ("cpu_energy", "ram_energy", "cpu_usage_pct", "disk_usage_gb"):
        assert set(prov4ml.get_metric(folder, name)["rank"]) == {0}
    document = (folder / "prov_gang_0.json").read_text()
    assert "CPU, RAM and disk are measured by local rank 0 alone" in document


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_child_does_not_measure_what_its_parent_does(tmp_path: Path, moment: str) -> None:
    parent = start(FORKING, str(tmp_path), moment)
    _, errors = parent.communicate(timeout=100)
    assert parent.returncode == 0, errors
    steps = prov4ml.get_metric(tmp_path / "forked_0", "ram_energy")["step"].tolist()
    assert steps == ([1] if moment == "before" else [0, 1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::provml_lightning.errors.IncompleteRunWarning")
def test_a_child_of_another_rank_does_not_either(tmp_path: Path) -> None:
    # The first rank of a second machine measures that machine.
    ranks = {"RANK": "1", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}
    parent = start(FORKING, str(tmp_path), "before", **ranks)
    _, errors = parent.communicate(timeout=100)
    assert parent.returncode == 0, errors
    assert prov4ml.get_metric(tmp_path / "forked_0", "ram_energy")["step"].tolist() == [1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_program_as_it_would_without_us(
    tmp_path: Path, number: signal.Signals
) -> None:
    program = start(ENDLESS, str(tmp_path), "signal")
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    program.send_signal(number)
    began = time.monotonic()
    _, errors = program.communicate(timeout=30)
    assert time.monotonic() - began < 10
    if number == signal.SIGTERM:
        assert program.returncode == -signal.SIGTERM
    else:
        assert errors.endswith("KeyboardInterrupt\n")


def test_a_program_that_does_not_end_its_run_ends_all_the_same(tmp_path: Path) -> None:
    program = start(ENDLESS, str(tmp_path), "exit")
    output, errors = program.communicate(timeout=30)
    assert program.returncode == 0, errors
    assert time.time() - float(output.split()[-1]) < 10  # a slow machine writes the documents
    assert len(prov4ml.get_metric(tmp_path / "endless_0", "ram_energy")) == 1
    assert errors == ""
