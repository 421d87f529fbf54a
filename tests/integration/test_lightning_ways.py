"""The ways in which people train: what is recorded is what the Trainer reports."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import (
    BatchSizeFinder,
    Callback,
    EarlyStopping,
    LearningRateFinder,
    ModelCheckpoint,
)
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.plugins.environments import SLURMEnvironment
from lightning.pytorch.tuner import Tuner
from torchmetrics import MeanMetric

import prov4ml
from tests.training import BATCHES, Digits, DigitsData, Witness, digits, trainer


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


def document(logger: Any) -> dict[str, Any]:
    directory = Path(logger.log_dir)
    read: dict[str, Any] = json.loads((directory / f"prov_{directory.name}.json").read_text())
    return read


def status(logger: Any) -> str:
    return str(json.loads(Path(logger.log_dir, "run.json").read_text())["status"])


def rows(logger: Any, name: str, context: str) -> list[tuple[int, int, float]]:
    frame = prov4ml.get_metric(logger.log_dir, name, context)
    return list(zip(frame["step"], frame["epoch"], frame["value"], strict=True))


def told(witness: Witness, name: str) -> list[tuple[int, int, float]]:
    return [(step, epoch, one[name]) for _, step, epoch, one in witness.told if name in one]


def versions(logger: Any) -> list[dict[str, Any]]:
    return [one for one in document(logger)["entity"].values() if "provml:version" in one]


class ByHand(Digits):
    """Optimises by hand, and logs with every option that says where a value goes."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.mean = MeanMetric()

    def training_step(self, batch: Any) -> None:
        optimizer = self.optimizers()
        optimizer.zero_grad()
        loss = self.loss(batch)
        self.manual_backward(loss)
        optimizer.step()
        self.mean(loss)
        self.log("mean", self.mean, on_step=True, on_epoch=True)
        self.log("bar", loss, prog_bar=True, sync_dist=True)
        self.log("nowhere", loss, logger=False)
        self.log_dict({"x": loss, "y": -loss}, on_step=False, on_epoch=True, sync_dist=True)


def test_manual_optimization_and_every_option_of_log_are_what_other_loggers_get() -> None:
    logger, witness = prov4ml.ProvMLLogger(), Witness()
    teacher = trainer(logger, witness)
    teacher.fit(ByHand(), digits(), digits())
    for name in ("mean_step", "mean_epoch", "bar", "x", "y"):
        assert rows(logger, name, "Training") == told(witness, name) != []
    assert rows(logger, "mean_epoch", "Training")[-1][2] == float(
        teacher.callback_metrics["mean_epoch"]
    )
    assert "nowhere" not in set(prov4ml.list_metrics(logger.log_dir)["label"])


def test_a_training_that_stops_early_is_complete_with_the_epochs_it_had() -> None:
    logger = prov4ml.ProvMLLogger()
    stopper = EarlyStopping("val_loss", patience=1, min_delta=1e9)
    teacher = trainer(logger, max_epochs=9, callbacks=[stopper])
    teacher.fit(Digits(), digits(), digits())
    assert status(logger) == "completed"
    assert stopper.stopped_epoch == 1
    assert [epoch for _, epoch, _ in rows(logger, "epoch_time", "Training")] == [0, 1]
    assert prov4ml.list_parameters(logger.log_dir)["trainer/max_epochs"] == teacher.max_epochs == 9


def test_a_training_whose_time_is_up_is_complete_and_its_timer_is_told() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1000, max_time={"seconds": 1})
    teacher.fit(Digits(), digits(), digits())
    assert status(logger) == "completed"
    assert 0 < teacher.current_epoch < 1000
    kept = prov4ml.list_parameters(logger.log_dir)
    assert kept["callback/Timer/duration"] == 1.0
    assert rows(logger, "loss", "Training")[-1][0] == teacher.global_step - 1


class Sized(Digits):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def training_step(self, batch: Any) -> torch.Tensor:
        self.seen.append(len(batch[1]))
        return super().training_step(batch)


@pytest.mark.filterwarnings("ignore:.*treespec.*:FutureWarning")
@pytest.mark.filterwarnings("ignore:Checkpoint directory")
def test_searches_leave_neither_epochs_nor_checkpoints_and_the_size_they_found() -> None:
    logger = prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint()
    teacher = trainer(logger, max_epochs=1, enable_checkpointing=True, callbacks=[keeper])
    model, data = Sized(), DigitsData()
    tuner = Tuner(teacher)
    found = tuner.scale_batch_size(model, datamodule=data, max_trials=2, steps_per_trial=1)
    tuner.lr_find(model, datamodule=data, num_training=3, update_attr=False)
    teacher.fit(model, datamodule=data)
    tuner.lr_find(model, datamodule=data, num_training=3, update_attr=False)
    prov4ml.end_run()

    sizes = {
        one["provml:batch_size"]
        for one in document(logger)["entity"].values()
        if one.get("prov:label") == "train"
    }
    assert sizes == {found} == {data.batch_size}
    assert model.seen[-1] == found
    assert len(rows(logger, "epoch_time", "Training")) == 1
    assert [str(Path(logger.log_dir, one["dcterms:identifier"])) for one in versions(logger)] == [
        keeper.best_model_path
    ]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.filterwarnings("ignore:.*treespec.*:FutureWarning")
def test_searches_that_are_callbacks_leave_what_they_found_and_nothing_of_their_trials(
    order: int,
) -> None:
    logger, witness, keeper = prov4ml.ProvMLLogger(), Witness(), ModelCheckpoint(save_top_k=-1)
    sizes = BatchSizeFinder(max_trials=2, steps_per_trial=1)
    rates = LearningRateFinder(num_training_steps=30, early_stop_threshold=None)
    callbacks = [sizes, rates, keeper][::order]
    teacher = trainer(logger, witness, max_epochs=4, enable_checkpointing=True, callbacks=callbacks)
    model, data = Sized(), DigitsData()
    teacher.fit(model, datamodule=data)
    assert teacher.global_step == 4 * 32 / 4
    assert len(model.seen) > teacher.global_step + 10, "the trials trained"
    (tested,) = teacher.test(model, datamodule=data, verbose=False)
    prov4ml.end_run()

    assert data.batch_size == sizes.optimal_batch_size == 4
    found = {
        one["prov:label"]: one["provml:batch_size"]
        for one in document(logger)["entity"].values()
        if "provml:batch_size" in one
    }
    assert found == {"train": 4, "val": 4, "test": 4}
    rate = prov4ml.list_parameters(logger.log_dir)["optimizer/SGD/lr"]
    assert rate == rates.optimal_lr.suggestion() == model.learning_rate != 0.1
    assert rows(logger, "loss", "Training") == told(witness, "loss")
    assert len(told(witness, "loss")) == 32
    times = [(step, epoch) for step, epoch, _ in rows(logger, "epoch_time", "Training")]
    assert times == [(7, 0), (15, 1), (23, 2), (31, 3)]
    assert rows(logger, "test_loss", "Testing") == told(witness, "test_loss")
    assert [value for _, _, value in told(witness, "test_loss")] == [tested["test_loss"]]
    assert len(rows(logger, "epoch_time", "Testing")) == 1
    assert [one["dcterms:identifier"] for one in versions(logger)] == [
        f"checkpoints/epoch={epoch}-step={8 * epoch + 8}.ckpt" for epoch in range(4)
    ]


@pytest.mark.filterwarnings("ignore:Checkpoint directory")
def test_fits_one_after_the_other_are_one_story() -> None:
    logger = prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint(save_top_k=-1)
    teacher = trainer(logger, max_epochs=1, enable_checkpointing=True, callbacks=[keeper])
    model = Digits()
    teacher.fit(model, digits(), digits())
    teacher.fit_loop.max_epochs = 2
    teacher.fit(model, digits(), digits())
    logger.log_metrics({"after": 1.0}, step=0)
    prov4ml.end_run()
    assert [one["provml:epoch"] for one in versions(logger)] == [0, 1]
    assert [epoch for _, epoch, _ in rows(logger, "epoch_time", "Training")] == [0, 1]
    assert prov4ml.get_metric(logger.log_dir, "after")["value"].tolist() == [1.0]
    assert status(logger) == "completed"


def test_behind_another_logger_checkpoints_lie_in_that_ones_folder_and_are_versions() -> None:
    csv, logger = CSVLogger(Path("csv").absolute()), prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint(monitor="val_loss", save_top_k=1, save_last=True)
    teacher = trainer(csv, logger, max_epochs=3, enable_checkpointing=True, callbacks=[keeper])
    teacher.fit(Digits(), digits(), digits())
    prov4ml.end_run()

    folder = Path(csv.log_dir)
    assert Path(keeper.dirpath) == folder / "checkpoints"
    assert not Path(logger.log_dir, "checkpoints").exists()
    made = {key: one for key, one in document(logger)["entity"].items() if "provml:version" in one}
    gone = {one["prov:entity"] for one in document(logger)["wasInvalidatedBy"].values()}
    places = {key: one["dcterms:identifier"] for key, one in made.items()}
    there = {str(path) for path in folder.glob("checkpoints/*.ckpt")}
    assert {places[key] for key in made.keys() - gone} == there
    assert there == {keeper.best_model_path, keeper.last_model_path}
    deleted = {
        str(folder / f"checkpoints/epoch={epoch}-step={4 * epoch + 4}.ckpt") for epoch in (0, 1)
    }
    assert {places[key] for key in gone} - there == deleted
    for key in made.keys() - gone:
        content = Path(places[key]).read_bytes()
        assert made[key]["provml:sha256"] == hashlib.sha256(content).hexdigest()
        assert made[key]["provml:step"] == teacher.global_step == 12
    marked = [places[key] for key, one in made.items() if one.get("provml:is_best")]
    assert marked == [keeper.best_model_path]


class Preempted(Callback):
    """Gets the signal by which SLURM says that the job will be requeued."""

    def on_train_batch_end(self, *arguments: Any) -> None:
        if arguments[-1] == 1 and arguments[0].current_epoch == 0:
            os.kill(os.getpid(), signal.SIGUSR1)


@pytest.mark.filterwarnings("ignore:.*srun", "ignore:You're resuming from a checkpoint")
def test_a_requeued_job_goes_on_from_the_checkpoint_that_slurm_left_time_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scontrol = tmp_path / "bin" / "scontrol"
    scontrol.parent.mkdir()
    scontrol.write_text('#!/bin/sh\necho "$@" > asked\n')
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", f"{scontrol.parent}:{os.environ['PATH']}")
    for name, value in {
        "JOB_ID": "4711", "JOB_NAME": "digits", "NTASKS": "1", "PROCID": "0", "LOCALID": "0",
        "NODEID": "0", "NODELIST": "localhost", "NTASKS_PER_NODE": "1",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"SLURM_{name}", value)
    first, second = prov4ml.ProvMLLogger(), prov4ml.ProvMLLogger()
    slurm = SLURMEnvironment(requeue_signal=signal.SIGUSR1)
    cut = trainer(first, plugins=[slurm], callbacks=[Preempted()], max_epochs=1)
    cut.fit(Digits(), digits(), digits())
    prov4ml.end_run()
    assert Path("asked").read_text() == "requeue 4711\n"
    (left,) = versions(first)
    assert left["dcterms:identifier"] == str(Path("hpc_ckpt_1.ckpt").absolute())
    assert left["provml:step"] == 2

    trainer(second, plugins=[slurm], max_epochs=2).fit(Digits(), digits(), digits())
    (loaded,) = versions(second)
    assert loaded["dcterms:identifier"] == left["dcterms:identifier"]
    assert loaded["provml:sha256"] == left["provml:sha256"]
    assert document(second)["prefix"]["origin"] == document(first)["prefix"]["default"]
    informed = [one["prov:informant"] for one in document(second)["wasInformedBy"].values()]
    assert "origin:run/lightning_logs_0" in informed
    assert rows(second, "loss", "Training")[0][0] == 2
    assert len(rows(first, "loss", "Training")) == BATCHES
