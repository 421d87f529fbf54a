"""Real processes under each way of starting them: one run, and what each rank did in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from socket import socket
from typing import Any

import pytest

import prov4ml

HERE = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(200)

PROGRAM = """
import os, signal, sys, time
import torch
import prov4ml
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader
from tests.training import Digits, digits, trainer

torch.set_num_threads(1)
every, devices, way = sys.argv[1] == "every", int(sys.argv[2]), sys.argv[3]
workers = {"num_workers": 1, "multiprocessing_context": "fork"} if "WORKERS" in os.environ else {}
training = DataLoader(digits().dataset, batch_size=8, **workers)


class Ranked(Digits):
    def training_step(self, batch, batch_idx):
        dies = f"rank {self.global_rank} dies" in (way, os.environ.get("DIES"))
        if dies and self.current_epoch == 1:
            open("died", "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
        self.log("rank", float(self.global_rank))
        return super().training_step(batch)


if __name__ == "__main__":
    if way == "late" and os.environ.get("LOCAL_RANK") == "1":
        time.sleep(5)
    logger = prov4ml.ProvMLLogger("ranks", collect_all_processes=every)
    if "BEFORE" in os.environ:
        logger.log_hyperparams({"told before": 1})
    keeper = ModelCheckpoint(monitor="val_loss", save_top_k=1, save_last=True)
    teacher = trainer(
        logger, devices=devices, enable_checkpointing=True, callbacks=[keeper],
        strategy=way if way.startswith("ddp") else "ddp", max_epochs=2,
    )
    teacher.fit(Ranked(), training, digits())
    if way == "endless" and teacher.global_rank == 1:
        logger.log_metrics({"late": 1.0}, 0)
        open("logged", "x").close()
        time.sleep(300)
    while way == "endless" and not os.path.exists("logged"):
        time.sleep(0.01)
"""


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{HERE / 'src'}:{HERE}", **more}


def free_port() -> str:
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def launch(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    (*before, which, devices, way) = arguments
    command = [sys.executable, "-W", "ignore", *before, str(program), which, devices, way]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(**more),
        check=False,
        capture_output=True,
        text=True,
        timeout=150,
    )


def the_run(folder: Path) -> Path:
    (run,) = prov4ml.list_runs_in_proj(folder / "prov")
    assert run == folder / "prov/ranks/version_0"
    return run


def document(run: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((run / "prov_version_0.json").read_text())
    return read


def versions(told: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in told["entity"].values() if "provml:version" in one]


def assert_the_story_is_told_once(run: Path, ranks: int) -> None:
    told = document(run)
    assert {"context/Training", "context/Validation"} <= told["activity"].keys()
    made = versions(told)
    assert sorted(one["provml:epoch"] for one in made) == [0, 0, 1, 1]
    assert [one["dcterms:identifier"] for one in made if one.get("provml:is_last")] == [
        "checkpoints/last.ckpt"
    ]
    parameters = prov4ml.list_parameters(run)
    assert parameters["trainer/world_size"] == parameters["trainer/num_devices"] == ranks
    replicas = {
        one["provml:distributed_replicas"]
        for one in told["entity"].values()
        if one.get("prov:label") == "train"
    }
    assert replicas == {ranks}


@pytest.mark.parametrize(
    ("strategy", "forking"),
    [("ddp_fork", {}), ("ddp_notebook", {"WORKERS": "1"}), ("ddp", {"WORKERS": "1"})],
)
def test_processes_that_fork_others_leave_one_run(
    tmp_path: Path, strategy: str, forking: dict[str, str]
) -> None:
    ended = launch(tmp_path, "zero", "2", strategy, **forking)
    assert ended.returncode == 0, ended.stderr
    run = the_run(tmp_path)
    assert prov4ml.get_metric(run, "rank")["value"].unique().tolist() == [0.0]
    assert prov4ml.get_metric(run, "epoch_time", "Training")["epoch"].tolist() == [0, 1]
    assert prov4ml.get_parameter(run, "ranks_0", "status") == "completed"
    assert_the_story_is_told_once(run, 2)


@pytest.mark.parametrize("before", [{}, {"BEFORE": "1"}])
@pytest.mark.parametrize("strategy", ["ddp_spawn", "ddp_fork", "ddp_notebook"])
def test_processes_born_of_the_script_are_ranks_of_its_run_each_with_its_own_rows(
    tmp_path: Path, strategy: str, before: dict[str, str]
) -> None:
    ended = launch(tmp_path, "every", "2", strategy, **before)
    assert ended.returncode == 0, ended.stderr
    run = the_run(tmp_path)
    # Four batches on two ranks, two epochs.
    values = prov4ml.get_metric(run, "rank")
    assert list(zip(values["rank"], values["value"], values["step"], strict=True)) == [
        (rank, float(rank), step) for rank in (0, 1) for step in range(4)
    ]
    epochs = prov4ml.get_metric(run, "epoch_time", "Training")
    assert list(zip(epochs["rank"], epochs["epoch"], strict=True)) == [
        (rank, epoch) for rank in (0, 1) for epoch in (0, 1)
    ]
    agents = document(run)["agent"].values()
    processes = [one["provml:rank"] for one in agents if "provml:rank" in one]
    assert sorted(processes) == [0, *([0] if before else []), 1]  # with the script itself
    assert prov4ml.list_parameters(run).get("told before") == (1 if before else None)
    assert prov4ml.get_parameter(run, "ranks_0", "status") == "completed"
    assert_the_story_is_told_once(run, 2)


@pytest.mark.parametrize(("devices", "way"), [("4", "subprocesses"), ("2", "late")])
def test_every_process_that_lightning_starts_is_in_the_run_a_late_one_too(
    tmp_path: Path, devices: str, way: str
) -> None:
    ended = launch(tmp_path, "every", devices, way)
    assert ended.returncode == 0, ended.stderr
    run, ranks = the_run(tmp_path), range(int(devices))
    values = prov4ml.get_metric(run, "rank")
    assert values.groupby("rank")["value"].unique().map(list).to_dict() == {
        rank: [float(rank)] for rank in ranks
    }
    assert_the_story_is_told_once(run, len(ranks))


def test_four_processes_of_torchrun_are_all_in_one_run(tmp_path: Path) -> None:
    torchrun = ("-m", "torch.distributed.run", "--nproc-per-node=4", f"--master-port={free_port()}")
    ended = launch(tmp_path, *torchrun, "every", "4", "torchrun")
    assert ended.returncode == 0, ended.stderr
    run = the_run(tmp_path)
    values = prov4ml.get_metric(run, "rank")
    assert values.groupby("rank")["value"].unique().map(list).to_dict() == {
        rank: [float(rank)] for rank in range(4)
    }
    agents = document(run)["agent"].values()
    assert sorted({one["provml:rank"] for one in agents if "provml:rank" in one}) == [0, 1, 2, 3]
    epochs = prov4ml.get_metric(run, "epoch_time", "Training")
    assert epochs.groupby("rank")["epoch"].apply(list).to_dict() == {
        rank: [0, 1] for rank in range(4)
    }
    parts = {
        one.get("provml:distributed_rank")
        for one in document(run)["entity"].values()
        if one.get("prov:label") == "train"
    }
    assert parts == {0, 1, 2, 3}
    assert_the_story_is_told_once(run, 4)


def slurm(folder: Path, way: str) -> tuple[list[int], list[str]]:
    """Run the program as two tasks that nobody watches; return how they ended, what they said."""
    (folder / "program.py").write_text(PROGRAM)
    shared = {
        "SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "digits", "SLURM_NTASKS": "2",
        "SLURM_NTASKS_PER_NODE": "2", "SLURM_NNODES": "1", "SLURM_NODEID": "0",
        "SLURM_JOB_NUM_NODES": "1", "SLURM_NODELIST": "localhost",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(),
    }  # fmt: skip
    command = [sys.executable, "-W", "ignore", "program.py", "every", "2", way]
    with ExitStack() as stack:
        tasks = [
            stack.enter_context(
                subprocess.Popen(
                    command,
                    cwd=folder,
                    env=environment(**shared, SLURM_PROCID=rank, SLURM_LOCALID=rank),
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for rank in ("0", "1")
        ]
        for task in tasks:
            stack.callback(task.kill)
        said = [task.communicate(timeout=100)[1] for task in tasks]
    return [task.returncode for task in tasks], said


def test_tasks_of_slurm_are_all_in_one_run(tmp_path: Path) -> None:
    codes, said = slurm(tmp_path, "slurm")
    assert codes == [0, 0], said
    run = the_run(tmp_path)
    values = prov4ml.get_metric(run, "rank")
    assert values.groupby("rank")["value"].unique().map(list).to_dict() == {0: [0.0], 1: [1.0]}
    assert_the_story_is_told_once(run, 2)


def notes(run: Path) -> list[str]:
    """Return what the document on the disk tells its readers, but what a machine cannot measure."""
    told = document(run)["activity"]["run/ranks_0"].get("provml:note", [])
    return [told] if isinstance(told, str) else told


def recovered(run: Path) -> str:
    command = [sys.executable, "-m", "provml_lightning", "recover", str(run)]
    ended = subprocess.run(
        command, env=environment(), check=True, capture_output=True, text=True, timeout=60
    )
    return ended.stdout


def assert_both_have_the_batches_of_the_first_epoch(folder: Path) -> Path:
    """Return the run, in which nobody could go on without the other, and which ended soon."""
    assert time.time() - (folder / "died").stat().st_mtime < 60, "the group's own limit is minutes"
    run = the_run(folder)
    rows = prov4ml.get_metric(run, "rank").groupby("rank")["step"].apply(list).to_dict()
    assert rows == {0: [0, 1], 1: [0, 1]}
    return run


@pytest.mark.parametrize("way", ["subprocesses", "slurm"])
def test_a_rank_that_dies_holds_nobody_up_and_the_document_names_it(
    tmp_path: Path, way: str
) -> None:
    if way == "slurm":
        (zero, one), said = slurm(tmp_path, "rank 1 dies")
        assert (zero, one) == (1, -signal.SIGKILL), said
    else:  # Lightning kills rank zero too, within five seconds
        assert launch(tmp_path, "every", "2", "rank 1 dies").returncode != 0
        recovered(the_run(tmp_path))
    run = assert_both_have_the_batches_of_the_first_epoch(tmp_path)
    assert [note for note in notes(run) if note.startswith("ranks:")] == [
        "ranks: rank 1 was cut off before its end; what it logged until then is here"
    ]
    assert prov4ml.get_parameter(run, "ranks_0", "status") == "failed"
    assert [one["provml:epoch"] for one in versions(document(run))] == [0, 0]
    assert "nothing to do, the record is whole" in recovered(run)


@pytest.mark.parametrize("strategy", ["ddp_spawn", "ddp_fork"])
def test_a_rank_that_dies_is_named_though_the_script_had_opened_the_run(
    tmp_path: Path, strategy: str
) -> None:
    ended = launch(tmp_path, "every", "2", strategy, BEFORE="1", DIES="rank 1 dies")
    assert "process 1 terminated with signal SIGKILL" in ended.stderr
    run = the_run(tmp_path)
    recovered(run)
    assert_both_have_the_batches_of_the_first_epoch(tmp_path)
    assert "ranks: rank 1 was cut off before its end; what it logged until then is here" in notes(
        run
    )


def test_rank_zeros_death_is_named_once_the_run_was_recovered(tmp_path: Path) -> None:
    (zero, one), said = slurm(tmp_path, "rank 0 dies")
    assert (zero, one) == (-signal.SIGKILL, 1), said
    run = the_run(tmp_path)
    assert ": recovered" in recovered(run)
    assert_both_have_the_batches_of_the_first_epoch(tmp_path)
    assert [note for note in notes(run) if note.startswith("ranks:")] == [
        "ranks: rank 0 was cut off before its end; what it logged until then is here"
    ]
    assert prov4ml.get_parameter(run, "ranks_0", "status") == "incomplete"
    assert "nothing to do, the record is whole" in recovered(run)


def test_a_rank_that_never_ends_is_waited_for_some_seconds_and_noted(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-W", "ignore", "program.py", "every", "2", "endless"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), start_new_session=True
    ) as process:
        try:
            assert process.wait(200) == 0
            run = the_run(tmp_path)
            told = document(run)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # the rank that sleeps
    assert prov4ml.get_parameter(run, "ranks_0", "status") == "completed"
    assert "rank 1 had not ended when the run did" in json.dumps(told)
    assert set(prov4ml.get_metric(run, "rank")["rank"]) == {0, 1}
    assert prov4ml.get_metric(run, "late")["rank"].tolist() == [1]
