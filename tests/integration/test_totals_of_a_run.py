"""What a run cost, in its document: live, killed, on several ranks."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import prov4ml
from provml_lightning.cli.app import app
from provml_lightning.errors import RecordNotFoundError
from provml_lightning.runtime.active import current, leave
from tests.training import Digits, digits, trainer

KILLED = """
import os, signal, sys, time
import prov4ml
prov4ml.start_run("killed", provenance_save_dir=sys.argv[1], carbon_intensity=360)
for step in range(3):
    time.sleep(0.1)
    prov4ml.log_carbon_metrics("Training", step)
    prov4ml.log_carbon_metrics("Validation", step)
os.kill(os.getpid(), signal.SIGKILL)
"""

PART = """
import os, signal, sys, time
import prov4ml
prov4ml.start_run("parts", provenance_save_dir=sys.argv[1], use_run_id=0, carbon_intensity=360)
prov4ml.log_carbon_metrics("Training", 0)
if sys.argv[2] == "ends":
    prov4ml.end_run()
else:
    for step in range(1, 4):
        time.sleep(0.2)
        prov4ml.log_carbon_metrics("Training", step)
    os.kill(os.getpid(), signal.SIGKILL)
"""

SAVED = """
import os, signal, sys, time
import prov4ml
run = prov4ml.start_run("saved", provenance_save_dir=sys.argv[1])
prov4ml.log_carbon_metrics("Training", 0)
run.snapshot()
time.sleep(0.5)
prov4ml.log_carbon_metrics("Training", 1)
os.kill(os.getpid(), signal.SIGKILL)
"""

RANKED = """
import sys, time
import prov4ml
prov4ml.start_run("ranks", provenance_save_dir=sys.argv[1], use_run_id=0,
                  collect_all_processes=True)
time.sleep(0.3)
prov4ml.log_system_metrics("Training", 0)
prov4ml.end_run()
"""


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU draws 100 W and the RAM 10 W, whatever the machine is."""
    monkeypatch.setenv("PROVML_CPU_TDP_W", "100")
    monkeypatch.setenv("PROVML_CPU_IDLE_FRACTION", "1")
    monkeypatch.setenv("PROVML_RAM_POWER_W", "10")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.chdir(tmp_path)


def of(folder: Path, activity: str) -> dict[str, Any]:
    names = (
        *("energy", "emissions", "energy_source", "emissions_unit", "flops_model"),
        *("total_energy", "total_emissions", "total_energy_source", "total_flops_model"),
        *("cpu_hardware", "ram_hardware"),
    )
    found = {}
    for name in names:
        try:
            found[name] = prov4ml.get_parameter(folder, activity, name)
        except RecordNotFoundError:
            continue
    return found


def summed(folder: Path, name: str, context: str) -> float:
    frame = prov4ml.get_metric(folder, name, context=context)
    return float(frame["value"].sum())


def test_contexts_have_the_sums_of_what_was_kept_for_them(tmp_path: Path) -> None:
    folder, model = tmp_path / "prov" / "costs_0", nn.Linear(6, 5)
    with prov4ml.start_run("costs", carbon_intensity=360, pue=2):
        for context in ("Training", "Validation"):
            for step in range(2):
                time.sleep(0.15)
                prov4ml.log_carbon_metrics(context, step)
                prov4ml.log_flops_per_batch("model", model, torch.ones(3, 6), context, step)

    for context in ("Training", "Validation"):
        told = of(folder, context)
        assert told["energy"] == pytest.approx(summed(folder, "energy_consumed", context))
        # 360 g/kWh are 0.0001 g/J, and twice that with a PUE of 2.
        assert told["emissions"] == pytest.approx(told["energy"] * 0.0002)
        assert told["emissions_unit"] == "gCO2eq"
        assert told["energy_source"].startswith("carbon:")
        assert told["flops_model"] == 2 * (2 * 3 * 6 * 5)


def test_the_runs_total_is_of_its_whole_time_also_outside_every_context(tmp_path: Path) -> None:
    folder = tmp_path / "prov" / "costs_0"
    with prov4ml.start_run("costs", carbon_intensity=360):
        prov4ml.log_carbon_metrics("Training")
        began = time.monotonic()
        time.sleep(0.5)  # nobody asks any more
        seconds = time.monotonic() - began

    run, context = of(folder, "costs_0"), of(folder, "Training")
    after = run["total_energy"] - context["energy"]
    assert after > 0
    if run["total_energy_source"] == "model.tdp+model.dimm":  # a machine without counters
        assert after == pytest.approx(110 * seconds, rel=0.1)
    assert run["total_emissions"] == pytest.approx(run["total_energy"] * 0.0001)
    assert "threads" in run["cpu_hardware"]
    assert run["ram_hardware"].endswith("GiB")


def test_system_metrics_alone_tell_energy_and_nothing_is_said_of_emissions(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "prov" / "costs_0"
    with prov4ml.start_run("costs"):
        for step in range(2):
            prov4ml.log_system_metrics("Training", step)
    told = of(folder, "Training")
    parts = [summed(folder, name, "Training") for name in ("cpu_energy", "ram_energy")]
    assert told["energy"] == pytest.approx(sum(parts))
    assert "emissions" not in told
    assert "total_emissions" not in of(folder, "costs_0")


def test_both_calls_in_a_context_do_not_count_a_joule_twice(tmp_path: Path) -> None:
    folder = tmp_path / "prov" / "costs_0"
    with prov4ml.start_run("costs", carbon_intensity=1):
        for step in range(2):
            prov4ml.log_system_metrics("Training", step)
            prov4ml.log_carbon_metrics("Training", step)
    consumed = summed(folder, "energy_consumed", "Training")
    assert of(folder, "Training")["energy"] == pytest.approx(consumed)
    assert of(folder, "costs_0")["total_energy"] >= consumed


def test_a_users_own_metric_of_that_name_is_no_cost(tmp_path: Path) -> None:
    folder = tmp_path / "prov" / "costs_0"
    with prov4ml.start_run("costs"):
        prov4ml.log_metric("energy_consumed", 1e9, "Training")
        prov4ml.log_metric("cpu_energy", 1e9, "Training", source="mine")
    assert of(folder, "Training") == {}
    assert of(folder, "costs_0") == {}


def test_a_run_that_measured_nothing_states_no_costs(tmp_path: Path) -> None:
    with prov4ml.start_run("costs"):
        prov4ml.log_metric("loss", 1.0, "Training")
    assert of(tmp_path / "prov" / "costs_0", "costs_0") == {}


@pytest.mark.filterwarnings("ignore::provml_lightning.errors.IncompleteRunWarning")
def test_a_killed_run_has_the_sums_of_what_it_had_logged(tmp_path: Path) -> None:
    program = [sys.executable, "-W", "ignore", "-c", KILLED, str(tmp_path)]
    assert subprocess.run(program, check=False, timeout=100).returncode == -signal.SIGKILL

    folder = tmp_path / "killed_0"
    parts = [summed(folder, "energy_consumed", one) for one in ("Training", "Validation")]
    assert of(folder, "killed_0")["total_energy"] == pytest.approx(sum(parts))
    assert of(folder, "killed_0")["total_emissions"] == pytest.approx(sum(parts) * 0.0001)
    assert of(folder, "Training")["energy"] == pytest.approx(parts[0])


@pytest.mark.filterwarnings("ignore::provml_lightning.errors.IncompleteRunWarning")
def test_a_run_that_is_killed_after_it_was_resumed_has_the_costs_of_both_parts(
    tmp_path: Path,
) -> None:
    for how in ("ends", "dies"):
        program = [sys.executable, "-W", "ignore", "-c", PART, str(tmp_path), how]
        subprocess.run(program, check=False, timeout=100)

    folder = tmp_path / "parts_0"
    run, logged = of(folder, "parts_0"), summed(folder, "energy_consumed", "Training")
    assert logged > 0
    assert run["total_energy"] >= logged
    assert run["total_emissions"] == pytest.approx(run["total_energy"] * 0.0001)


@pytest.mark.filterwarnings("ignore::provml_lightning.errors.IncompleteRunWarning")
def test_what_is_logged_after_a_snapshot_is_in_the_total_of_a_killed_run(tmp_path: Path) -> None:
    program = [sys.executable, "-W", "ignore", "-c", SAVED, str(tmp_path)]
    assert subprocess.run(program, check=False, timeout=100).returncode == -signal.SIGKILL

    folder = tmp_path / "saved_0"
    logged = summed(folder, "energy_consumed", "Training")
    assert of(folder, "saved_0")["total_energy"] == pytest.approx(logged)
    assert of(folder, "Training")["energy"] == pytest.approx(logged)
    assert "threads" in of(folder, "saved_0")["cpu_hardware"]


def test_the_context_without_a_name_is_not_the_run_itself(tmp_path: Path) -> None:
    folder = tmp_path / "prov" / "costs_0"
    with prov4ml.start_run("costs"):
        for context in (None, ""):
            for value in (2.0, 3.0):
                prov4ml.log_metric("model", value, context, source="flops.meta", unit="FLOP")
    document = json.loads((folder / "prov_costs_0.json").read_text())
    stated = [activity.get("provml:flops_model") for activity in document["activity"].values()]
    assert [float(each["$"]) for each in stated if each] == [5.0]
    assert of(folder, "costs_0")["total_flops_model"] == 10.0


def test_numbers_that_imitate_ours_but_not_their_units_are_no_cost(tmp_path: Path) -> None:
    folder = tmp_path / "prov" / "costs_0"
    with prov4ml.start_run("costs"):
        prov4ml.log_metric("energy_consumed", 1e9, "Training", source="carbon:rapl")
        prov4ml.log_metric("cpu_energy", 1e9, "Training", source="rapl")
    assert of(folder, "Training") == {}


def test_a_users_infinite_flops_do_not_stop_the_end_of_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "prov" / "costs_0"
    with np.errstate(all="raise"), prov4ml.start_run("costs"):
        for value in (float("inf"), float("-inf")):
            prov4ml.log_metric("model", value, "Training", source="flops.mine", unit="FLOP")
    assert math.isnan(of(folder, "Training")["flops_model"])


def test_two_ranks_of_a_machine_add_up_to_one_machine(tmp_path: Path) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", RANKED, str(tmp_path)],
            env={**os.environ, "RANK": f"{n}", "LOCAL_RANK": f"{n}", "WORLD_SIZE": "2"},
        )
        for n in (0, 1)
    ]
    began = time.monotonic()
    assert [rank.wait(100) for rank in ranks] == [0, 0]
    seconds = time.monotonic() - began

    run = of(tmp_path / "ranks_0", "ranks_0")
    if run["total_energy_source"] == "model.tdp+model.dimm":  # 110 W, once
        assert 0 < run["total_energy"] < 110 * seconds


def test_show_tells_what_the_run_cost(tmp_path: Path) -> None:
    with prov4ml.start_run("costs", carbon_intensity=360):
        prov4ml.log_carbon_metrics("Training")
        prov4ml.log_flops_per_batch("model", nn.Linear(6, 5), torch.ones(3, 6), "Training")
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "prov" / "costs_0")])
    assert shown.exit_code == 0
    lines = [" ".join(line.split()) for line in shown.output.splitlines()]
    assert any(line.startswith("energy ") and " J (" in line for line in lines)
    assert any(line.startswith("emissions ") and " gCO2eq (" in line for line in lines)
    assert "flops model 180 FLOP (flops.meta)" in lines


def test_what_a_process_does_after_its_training_is_no_cost_of_the_training(tmp_path: Path) -> None:
    totals = []
    for name in ("first", "second"):
        logger = prov4ml.ProvMLLogger(name, carbon_intensity=360)
        teacher = trainer(logger, max_epochs=1, callbacks=[prov4ml.CarbonMonitor()])
        teacher.fit(Digits(), digits(), digits())
        folder = Path(logger.log_dir)
        totals.append((folder, of(folder, f"{name}_0")["total_energy"]))
        logger.experiment.record_metric("score", 1.0)  # goes on, and stays open
    time.sleep(1)
    while (run := current()) is not None:
        leave(run)
        run.close()
    for folder, joules in totals:
        assert of(folder, f"{folder.parent.name}_0")["total_energy"] == joules
    assert tmp_path in totals[0][0].parents
