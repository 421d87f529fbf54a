"""Two real processes of Lightning's own launchers leave one run, that of rank zero."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import prov4ml

HERE = Path(__file__).parents[2]

# Nine processes import Lightning.
pytestmark = pytest.mark.timeout(400)

PROGRAM = """
import os, pathlib, sys, time
import prov4ml
from tests.training import Digits, digits, trainer

class Telling(Digits):
    def on_fit_start(self):
        prov4ml.log_param("told by", self.global_rank)
        logger = self.trainer.logger
        note = [os.getpid(), self.global_rank, type(logger.experiment).__name__, logger.log_dir]
        pathlib.Path(f"rank{self.global_rank}").write_text("\\n".join(map(str, note)))

    def training_step(self, batch):
        loss = super().training_step(batch)
        self.log("rank", float(self.global_rank))
        return loss

class Failing(Digits):
    def on_train_epoch_end(self):
        if self.global_rank == 0:
            raise ValueError("rank zero fails")
        time.sleep(60)  # killed at once; in a collective it would abort, and be told of instead

def fit(model):
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(
        logger, max_epochs=2, devices=2, strategy=sys.argv[1], enable_checkpointing=True
    )
    teacher.fit(model, digits(), digits())
    return logger

if __name__ == "__main__":
    opened = fit(Telling())._run is not None
    pathlib.Path(f"done{os.environ.get('LOCAL_RANK', 'main')}").write_text(f"{opened}")
    if sys.argv[1] == "ddp_spawn":
        fit(Failing())
"""


def _launch(folder: Path, strategy: str) -> str:
    """Run the program and return what it says as it ends."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-W", "ignore", str(program), strategy]
    environment = {**os.environ, "PYTHONPATH": f"{HERE / 'src'}:{HERE}"}
    ended = subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True
    )
    assert ended.returncode == (strategy == "ddp_spawn"), ended.stderr
    return ended.stderr


@pytest.fixture(scope="module")
def ddp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ddp")
    _launch(folder, "ddp")
    return folder


@pytest.fixture(scope="module")
def spawned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of two trainings, the second of which fails."""
    folder = tmp_path_factory.mktemp("spawned")
    assert "rank zero fails" in _launch(folder, "ddp_spawn")
    return folder


@pytest.fixture(params=["ddp", "spawned"])
def trained(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.getfixturevalue(request.param)
    return folder


def _index(folder: Path, version: int = 0) -> dict[str, Any]:
    run = folder / f"prov/lightning_logs/version_{version}"
    return dict(json.loads((run / "run.json").read_text()))


def test_there_is_one_run_and_it_is_rank_zeros(trained: Path) -> None:
    run, *failed = prov4ml.list_runs_in_proj(trained / "prov")
    assert run == trained / "prov/lightning_logs/version_0"
    assert len(failed) == (trained / "donemain").exists()  # spawned ones fail once more
    assert sorted(run.parent.iterdir()) == [run, *failed]
    assert prov4ml.get_metric(run, "rank")["value"].unique().tolist() == [0.0]
    frame = prov4ml.get_metric(run, "loss", "Training")
    assert list(zip(frame["step"], frame["epoch"], strict=True)) == [(0, 0), (1, 0), (2, 1), (3, 1)]
    assert _index(trained)["status"] == "completed"
    assert _index(trained)["ranks"] == [0]


def test_calls_in_the_module_are_kept_on_rank_zero_alone(trained: Path) -> None:
    run = trained / "prov/lightning_logs/version_0"
    assert prov4ml.list_parameters(str(run))["told by"] == 0


def test_both_ranks_name_the_same_folder_and_the_other_has_a_dummy(trained: Path) -> None:
    zero, one = ((trained / f"rank{rank}").read_text().splitlines() for rank in (0, 1))
    assert zero[0] != one[0]
    assert (zero[2], one[2]) == ("Run", "_DummyExperiment")
    assert zero[3] == one[3] == str(trained / "prov/lightning_logs/version_0")


def test_checkpoints_lie_inside_the_run(trained: Path) -> None:
    run = trained / "prov/lightning_logs/version_0"
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["epoch=1-step=4.ckpt"]
    told = json.loads((run / "prov_version_0.json").read_text())
    made = {key: one for key, one in told["entity"].items() if "provml:version" in one}
    assert [one["provml:epoch"] for one in made.values()] == [0, 1]
    gone = [one["prov:entity"] for one in told["wasInvalidatedBy"].values()]
    assert gone == [next(iter(made))]


def test_the_process_that_only_spawned_opens_no_run(trained: Path) -> None:
    if (trained / "donemain").exists():  # ddp_spawn; with ddp rank zero is the main process
        assert (trained / "donemain").read_text() == "False"
    else:
        assert (trained / "done0").read_text() == "True"
    ours = {"prov", "program.py", "rank0", "rank1", "done0", "done1", "donemain"}
    assert {path.name for path in trained.iterdir()} - ours <= {"__pycache__"}


def test_a_failure_in_spawned_processes_is_the_runs_and_the_main_process_adds_none(
    spawned: Path,
) -> None:
    assert _index(spawned, 1)["status"] == "failed"
    document = spawned / "prov/lightning_logs/version_1/prov_version_1.json"
    assert "rank zero fails" in document.read_text()
