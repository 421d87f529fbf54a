"""A Trainer that introduces itself to no logger: ``enable_autolog_hparams=False``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

import prov4ml
from provml_lightning.loggers.lineage.watcher import Lineage
from tests.stories import document
from tests.training import Digits, DigitsData, digits, trainer


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Misleading(Digits):
    """Logs under names that tell of other stages."""

    def training_step(self, batch: Any) -> torch.Tensor:
        loss = super().training_step(batch)
        self.log("val_lookalike", loss)
        return loss

    def on_test_epoch_end(self) -> None:
        self.log("train_lookalike", 1.0)


def told(*, autolog: bool) -> dict[str, Any]:
    """Return the document of a training and a test, in which all of Lightning's parts work."""
    torch.manual_seed(7)
    logger = prov4ml.ProvMLLogger(name=f"autolog {autolog}", strict=True)
    teacher = trainer(
        logger,
        enable_autolog_hparams=autolog,
        enable_checkpointing=True,
        callbacks=[ModelCheckpoint(monitor="val_loss")],
        num_sanity_val_steps=1,
    )
    model = Misleading()
    teacher.fit(model, DigitsData())
    teacher.test(model, DigitsData(), verbose=False)
    assert sum(isinstance(one, Lineage) for one in teacher.callbacks) == 1
    prov4ml.end_run()
    return document(logger)


def test_its_story_is_the_same_but_for_the_hyperparameters() -> None:
    with_them, without = told(autolog=True), told(autolog=False)
    for kind in ("entity", "activity", "agent"):
        extra = {key for key in with_them[kind] if key not in without[kind]}
        hyperparameters = {
            key
            for key in with_them[kind]
            if with_them[kind][key].get("prov:label") in {"learning_rate", "batch_size"}
        }
        runs = {key for key in with_them[kind] if "autolog" in key}
        assert extra == (hyperparameters | runs), kind
        assert len(without[kind]) == len(with_them[kind]) - len(hyperparameters)
    assert "metric/Training/val_lookalike" in without["entity"]
    assert "metric/Testing/train_lookalike" in without["entity"]


def test_a_second_training_after_one_that_failed_is_told_too() -> None:
    class Failing(Digits):
        def on_validation_epoch_end(self) -> None:
            raise RuntimeError("no more")

    logger = prov4ml.ProvMLLogger(strict=True)
    teacher = trainer(logger, enable_autolog_hparams=False)
    with pytest.raises(RuntimeError, match="no more"):
        teacher.fit(Failing(), digits(), digits())
    teacher.fit(Digits(), digits(), digits())
    prov4ml.end_run()
    labels = {one.get("prov:label") for one in document(logger)["entity"].values()}
    assert {"Failing", "Digits"} <= labels


def test_a_trial_of_it_writes_nothing() -> None:
    teacher = trainer(prov4ml.ProvMLLogger(), enable_autolog_hparams=False, fast_dev_run=True)
    teacher.fit(Digits(), digits(), digits())
    assert not Path("prov").exists()
