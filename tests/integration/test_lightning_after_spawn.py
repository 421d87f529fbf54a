"""What the process does that let others train: it goes on with the run that they made."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import prov4ml

HERE = Path(__file__).parents[2]

# Up to nine processes import Lightning.
pytestmark = pytest.mark.timeout(400)

PROGRAM = """
import json, sys
import torch
import prov4ml
from lightning.pytorch.callbacks import ModelCheckpoint
from tests.training import Digits, digits, trainer

torch.set_num_threads(1)  # threads of OpenMP's do not survive a fork

if __name__ == "__main__":
    logger = prov4ml.ProvMLLogger("apart")
    if "before" in sys.argv:
        logger.log_hyperparams({"told before": 1})
    keeper = ModelCheckpoint(save_last="save_last" in sys.argv)
    teacher = trainer(
        *([] if "late" in sys.argv else [logger]), max_epochs=2, devices=2,
        strategy=sys.argv[1], enable_checkpointing=True, callbacks=[keeper],
    )
    teacher.logger = logger
    model = Digits()
    teacher.fit(model, digits(), digits())
    teacher.save_checkpoint("whole.ckpt")
    teacher.save_checkpoint("weights.ckpt", weights_only=True)
    (tested,) = teacher.test(model, digits(), verbose=False)
    logger.log_metrics({"afterwards": 2.5}, 7)
    print(json.dumps([teacher.checkpoint_callback.best_model_path, tested, teacher.log_dir]))
"""


@pytest.fixture(scope="module", params=["ddp_spawn before", "ddp_fork save_last late"])
def left(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the folder, what the Trainer says at the end, and how it was started."""
    folder = tmp_path_factory.mktemp("apart")
    (folder / "program.py").write_text(PROGRAM)
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "program.py", *request.param.split()],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{HERE / 'src'}:{HERE}"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return folder, json.loads(ended.stdout.splitlines()[-1]), request.param


def test_training_and_test_and_what_is_logged_afterwards_are_one_run(left: Any) -> None:
    folder, (_, tested, place), said = left
    (run,) = prov4ml.list_runs_in_proj(folder / "prov")
    assert str(run) == place == str(folder / "prov/apart/version_0")
    assert prov4ml.get_metric(run, "loss", "Training")["step"].tolist() == [0, 1, 2, 3]
    (value,) = prov4ml.get_metric(run, "test_loss", "Testing")["value"]
    assert value == pytest.approx(tested["test_loss"])
    for context, epochs in (("Training", 2), ("Testing", 1)):  # rank zero alone tells
        assert len(prov4ml.get_metric(run, "epoch_time", context)) == epochs
    frame = prov4ml.get_metric(run, "afterwards")
    assert (frame["value"].tolist(), frame["step"].tolist()) == ([2.5], [7])
    assert json.loads((run / "run.json").read_text())["status"] == "completed"
    before = prov4ml.list_parameters(str(run)).get("told before")
    assert before == (1 if "before" in said else None)


def test_what_it_saves_by_hand_comes_from_what_the_others_trained(left: Any) -> None:
    folder, (best, _, place), said = left
    document = json.loads(Path(place, "prov_version_0.json").read_text())
    found = {key: one for key, one in document["entity"].items() if "provml:version" in one}
    by_place = {str(Path(place, one["dcterms:identifier"])): key for key, one in found.items()}
    whole, weights = str(folder / "whole.ckpt"), str(folder / "weights.ckpt")
    assert {best, whole, weights} <= by_place.keys()
    for path in (best, whole, weights):
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        assert found[by_place[path]]["provml:sha256"] == digest
    derived = {
        (one["prov:generatedEntity"], one["prov:usedEntity"])
        for one in document["wasDerivedFrom"].values()
    }
    assert (by_place[weights], by_place[whole]) in derived
    trained = by_place.get(f"{place}/checkpoints/last.ckpt", by_place[best])
    assert (by_place[whole], trained) in derived
    typed = f"{sys.executable} -W ignore program.py {said}"
    assert document["activity"]["run/apart_0"]["provml:command_line"] == typed
    assert "spawn_main" not in json.dumps(document)
    last = [one["dcterms:identifier"] for one in found.values() if one.get("provml:is_last")]
    assert last == (["checkpoints/last.ckpt"] if "save_last" in said else [weights])
    (kept,) = [key for key, one in found.items() if one.get("provml:is_best")]
    assert kept == by_place[best]


GOES_ON = """
import sys
import torch
import prov4ml
from lightning.pytorch.callbacks import ModelCheckpoint
from tests.training import Digits, digits, trainer

torch.set_num_threads(1)  # threads of OpenMP's do not survive a fork

if __name__ == "__main__":
    logger, model = prov4ml.ProvMLLogger("on"), Digits()
    first = trainer(logger, max_epochs=1, enable_checkpointing=True)
    first.fit(model, digits(), digits())
    keeper = ModelCheckpoint(monitor="val_loss", filename="better", save_top_k=1)
    second = trainer(
        logger, max_epochs=1, strategy=sys.argv[1], enable_checkpointing=True, callbacks=[keeper]
    )
    second.fit(model, digits(), digits())
    second.save_checkpoint("prov/on/version_0/whole.ckpt")
    second.test(model, digits(), verbose=False)  # whose processes read what they find there
"""


@pytest.mark.parametrize("strategy", ["ddp_spawn", "ddp_fork"])
def test_processes_that_go_on_with_what_this_one_trained_say_so(
    strategy: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(GOES_ON)
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "program.py", strategy],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{HERE / 'src'}:{HERE}"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    run = tmp_path / "prov" / "on" / "version_0"
    document = json.loads((run / "prov_version_0.json").read_text())
    found = {
        key: Path(one["dcterms:identifier"]).stem
        for key, one in document["entity"].items()
        if "provml:version" in one
    }
    assert list(found.values()) == ["epoch=0-step=4", "better", "whole"]
    lines = {
        (found[one["prov:generatedEntity"]], found[one["prov:usedEntity"]])
        for one in document["wasDerivedFrom"].values()
        if one["prov:generatedEntity"] in found and one["prov:usedEntity"] in found
    }
    assert lines == {("better", "epoch=0-step=4"), ("whole", "better")}
    marks = [
        (found[key], mark)
        for key in found
        for mark in ("is_best", "is_last")
        if document["entity"][key].get(f"provml:{mark}")
    ]
    assert marks == [("better", "is_best"), ("whole", "is_last")]


ALONE = """
import multiprocessing
import torch
import prov4ml
from tests.training import Digits, digits, trainer as make_trainer

torch.set_num_threads(1)
logger = prov4ml.ProvMLLogger("alone")


def fit(rate):
    make_trainer(logger, max_epochs=1).fit(Digits(rate), digits(), digits())


def launch():  # of a name of Lightning's
    trainer = make_trainer(logger, max_epochs=1)
    print(trainer.logger.version)  # settles it, here
    forking = multiprocessing.get_context("fork")
    processes = [forking.Process(target=fit, args=(rate,)) for rate in (0.1, 0.2, 0.3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


if __name__ == "__main__":
    launch()
"""


def test_trainings_that_the_user_forks_himself_are_a_run_each(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(ALONE)
    subprocess.run(
        [sys.executable, "-W", "ignore", "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{HERE / 'src'}:{HERE}"},
        check=True,
        capture_output=True,
    )
    runs = prov4ml.list_runs_in_proj(tmp_path / "prov")
    rates = [prov4ml.list_parameters(str(run))["learning_rate"] for run in runs]
    assert sorted(rates) == [0.1, 0.2, 0.3]
    for run in runs:
        assert prov4ml.get_metric(run, "loss", "Training")["step"].tolist() == [0, 1, 2, 3]
