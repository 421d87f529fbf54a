"""Several processes of one launch, without a process group, record into one run."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import prov4ml

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
import os, sys
import prov4ml

project, ends = sys.argv[1:]
rank = int(os.environ["RANK"])
prov4ml.start_run("launch", provenance_save_dir=project, collect_all_processes=True)
for step in range(50):
    prov4ml.log_metric("loss", 100 * rank + step, "Training", step)
prov4ml.log_param("seed", rank)
if ends == "dies" and rank == 1:
    os._exit(1)
prov4ml.end_run()
"""


def launch(project: Path, ranks: int, *, ends: str = "all", only: tuple[int, ...] = ()) -> None:
    """Run the script once per rank, as a launcher on one machine would."""
    shared = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "MASTER_PORT": "29507"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(project), ends],
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in only or range(ranks)
    ]
    for process in processes:
        process.wait(timeout=90)


def test_all_ranks_are_in_one_run_with_a_rank_column(tmp_path: Path) -> None:
    launch(tmp_path, 3)
    (run,) = prov4ml.list_runs_in_proj(tmp_path)
    loss = prov4ml.get_metric(run, "loss", context="Training")
    assert loss.groupby("rank").size().to_dict() == {0: 50, 1: 50, 2: 50}
    assert loss[loss["rank"] == 2]["value"].tolist() == [200.0 + step for step in range(50)]
    assert sorted(prov4ml.list_parameters(run)["seed"]) == [0, 1, 2]


def test_a_second_launch_gets_a_run_of_its_own(tmp_path: Path) -> None:
    launch(tmp_path, 2)
    launch(tmp_path, 2)
    assert [run.name for run in prov4ml.list_runs_in_proj(tmp_path)] == ["launch_0", "launch_1"]
    for run in prov4ml.list_runs_in_proj(tmp_path):
        assert len(prov4ml.get_metric(run, "loss")) == 100


def test_what_a_dead_rank_logged_is_in_the_record(tmp_path: Path) -> None:
    launch(tmp_path, 2, ends="dies")
    (run,) = prov4ml.list_runs_in_proj(tmp_path)
    loss = prov4ml.get_metric(run, "loss")
    assert loss.groupby("rank").size().to_dict() == {0: 50, 1: 50}


def test_a_rank_that_never_comes_is_noted_and_holds_nobody_for_ever(tmp_path: Path) -> None:
    launch(tmp_path, 2, only=(0,))
    (run,) = prov4ml.list_runs_in_proj(tmp_path)
    notes = prov4ml.get_parameter(run, "run/launch_0", "note")
    assert "rank 1 had not ended" in str(notes)


@pytest.mark.parametrize("rank", ["1", "7"])
def test_ranks_that_were_not_asked_record_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: str
) -> None:
    monkeypatch.setenv("RANK", rank)
    with prov4ml.start_run("quiet", provenance_save_dir=tmp_path / "prov"):
        prov4ml.log_metric("loss", 1.0)
        prov4ml.log_param("lr", 0.1)
        prov4ml.log_artifact("text", {"a": 1})
    assert not (tmp_path / "prov").exists()
