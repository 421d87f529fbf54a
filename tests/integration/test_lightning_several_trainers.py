"""Trainers that share a logger: one after the other, and one within another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint, OnExceptionCheckpoint

import prov4ml
from tests.stories import document, paths, relations, versions
from tests.training import BATCHES, Digits, DigitsData, digits, trainer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)
    handler = signal.getsignal(signal.SIGINT)  # Lightning ignores it after a Ctrl-C
    yield
    signal.signal(signal.SIGINT, handler)


class Fails(Digits):
    """Fails in its second epoch."""

    def on_train_epoch_start(self) -> None:
        if self.current_epoch == 1:
            raise ValueError("inner")


class TrainsAnother(Digits):
    """Trains another module at a moment of its own training."""

    inner: Callable[[], None]

    def on_train_epoch_start(self) -> None:
        self.inner()


def trains(inner: Callable[[], None]) -> TrainsAnother:
    module = TrainsAnother()
    module.inner = inner
    return module


NOTEBOOK = """
import prov4ml
from tests.training import Digits, digits, trainer

class Interrupted(Digits):
    def training_step(self, *_):
        raise KeyboardInterrupt

logger = prov4ml.ProvMLLogger()
try:
    teacher = trainer(logger, max_epochs=1)
    teacher.fit(Interrupted(), digits(), digits())
except SystemExit:  # as a notebook does, which goes on
    pass
again = trainer(logger, max_epochs=1)
again.fit(Digits(), digits(), digits())
logger.log_metrics({"by_hand": 1.0})
"""


def test_a_good_training_after_a_ctrl_c_in_a_notebook_is_completed(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", NOTEBOOK],
        env={**os.environ, "PYTHONPATH": f"{HERE / 'src'}:{HERE}"},
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ended.returncode == 0, ended.stderr
    run = tmp_path / "prov" / "lightning_logs" / "version_0"
    assert json.loads((run / "run.json").read_text())["status"] == "completed"
    told = prov4ml.get_metric(run, "by_hand")
    assert told["value"].tolist() == [1.0]
    assert len(prov4ml.get_metric(run, "loss", "Training")) == BATCHES


@pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists and is not empty")
@pytest.mark.filterwarnings("ignore:.*fit.ckpt_path=")
def test_best_is_what_the_last_training_says_though_inner_ones_failed_and_saved(
    tmp_path: Path,
) -> None:
    logger = prov4ml.ProvMLLogger()

    def inner() -> None:
        saves = OnExceptionCheckpoint(tmp_path / "inner")
        with suppress(ValueError):
            teacher = trainer(logger, max_epochs=2, enable_checkpointing=True, callbacks=[saves])
            teacher.fit(Fails(), digits(), digits())

    def fit(folder: str, module: Digits) -> ModelCheckpoint:
        keeper = ModelCheckpoint(tmp_path / folder, monitor="loss", save_top_k=1)
        trainer(logger, max_epochs=3, enable_checkpointing=True, callbacks=[keeper]).fit(
            module, digits(), digits()
        )
        return keeper

    fit("first", trains(inner))
    keeper = fit("last", Digits())
    prov4ml.end_run()
    assert paths(logger, is_best=True) == [keeper.best_model_path]


def test_an_epoch_within_which_another_training_worked_has_its_own_time() -> None:
    logger = prov4ml.ProvMLLogger()

    def inner() -> None:
        trainer(logger, max_epochs=2).fit(Digits(), digits(), digits())

    trainer(logger, max_epochs=1).fit(trains(inner), digits(), digits())
    prov4ml.end_run()
    times = prov4ml.get_metric(logger.log_dir, "epoch_time", "Training")
    assert len(times) == 3
    first, second, outer = times.sort_values("timestamp")["value"].tolist()
    assert outer > first + second


def test_loaders_that_a_test_is_given_are_not_of_the_data_module_of_the_training() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher, module, data = trainer(logger, max_epochs=1), Digits(), DigitsData()
    teacher.fit(module, datamodule=data)
    teacher.validate(module, digits(), verbose=False)
    teacher.test(module, digits(), verbose=False)
    teacher.predict(module, digits())
    prov4ml.end_run()
    told = {
        (one["yprov:context"], one.get("provml:data_module", "").rpartition(".")[2])
        for one in document(logger)["entity"].values()
        if one.get("yprov:context") and "provml:total_batches" in one
    }
    assert told == {
        ("Training", "DigitsData"),
        ("Validation", "DigitsData"),
        ("Validation", ""),
        ("Testing", ""),
        ("Prediction", ""),
    }


def test_a_damaged_index_is_told_at_the_end_and_stops_no_test() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher, module = trainer(logger, max_epochs=1), Digits()
    teacher.fit(module, digits(), digits())
    index = Path(logger.log_dir, "run.json")
    sound = index.read_bytes()
    index.write_text("{")
    with pytest.warns(match="is not the index of a run"):
        (told,) = teacher.test(module, digits(), verbose=False)
    index.write_bytes(sound)
    prov4ml.end_run()
    (kept,) = prov4ml.get_metric(logger.log_dir, "test_loss", "Testing")["value"]
    assert kept == pytest.approx(told["test_loss"])
    assert len(versions(logger)) == 0


class FailsToTest(Digits):
    """Has no data for a test."""

    def test_dataloader(self) -> Any:
        raise ValueError("no data")


def test_a_test_that_failed_within_takes_neither_origin_nor_data_from_the_training(
    tmp_path: Path,
) -> None:
    start = tmp_path / "start.ckpt"
    before = trainer(max_epochs=1)
    before.fit(Digits(), digits(), digits())
    before.save_checkpoint(start)
    logger = prov4ml.ProvMLLogger()

    def inner() -> None:
        with suppress(ValueError):
            trainer(logger).test(FailsToTest(), verbose=False)

    teacher = trainer(logger, max_epochs=2, num_sanity_val_steps=0)
    teacher.fit(trains(inner), digits(), digits(), ckpt_path=start)
    teacher.save_checkpoint(tmp_path / "out.ckpt")
    prov4ml.end_run()
    names = {key: Path(one["dcterms:identifier"]).stem for key, one in versions(logger).items()}
    told = relations(logger, "used", "activity", "entity")
    used = [(activity, names[key]) for activity, key in told if key in names]
    assert used == [("context/Training", "start")]
    derived = relations(logger, "wasDerivedFrom", "generatedEntity", "usedEntity")
    assert {(names[made], names.get(key, key)) for made, key in derived if made in names} == {
        ("out", "start"),
        ("out", "dataset/Training/train/lightning"),
    }
