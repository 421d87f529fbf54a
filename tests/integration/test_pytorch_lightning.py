"""Users of the package pytorch_lightning, whose classes are not those of lightning.pytorch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import LearningRateFinder, ModelCheckpoint
from torch import nn

import prov4ml
from tests.training import digits

if TYPE_CHECKING:
    import pytest


class Digits(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.save_hyperparameters({"rate": 0.5})
        self.layer = nn.Linear(64, 10)

    def training_step(self, batch: Any) -> torch.Tensor:
        loss = nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: Any) -> None:
        self.log("val_loss", nn.functional.cross_entropy(self.layer(batch[0]), batch[1]))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.5)


def taught(logger: Any, *callbacks: Any) -> pl.Trainer:
    return pl.Trainer(
        accelerator="cpu", callbacks=list(callbacks), enable_model_summary=False,
        enable_progress_bar=False, log_every_n_steps=1, logger=[logger], max_epochs=2,
    )  # fmt: skip


def test_the_record_is_as_whole_and_as_well_placed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    logger, keeper = prov4ml.ProvMLLogger(), ModelCheckpoint(monitor="val_loss", save_top_k=1)
    teacher = taught(logger, keeper)
    teacher.fit(Digits(), digits(), digits())
    teacher.validate(ckpt_path="best", dataloaders=digits(), verbose=False)

    assert teacher.log_dir == logger.log_dir
    assert prov4ml.get_metric(logger.log_dir, "loss", "Training")["epoch"].tolist() == [
        0, 0, 0, 0, 1, 1, 1, 1,
    ]  # fmt: skip
    told = json.loads(Path(logger.log_dir, "prov_version_0.json").read_text())
    assert {"context/Sanity%20checking", "context/Training", "context/Validation"} <= set(
        told["activity"]
    )
    best = [key for key, one in told["entity"].items() if one.get("provml:is_best")]
    assert [told["entity"][key]["dcterms:identifier"] for key in best] == [
        Path(keeper.best_model_path).relative_to(logger.log_dir).as_posix()
    ]
    used = {(one["prov:activity"], one["prov:entity"]) for one in told["used"].values()}
    assert ("context/Validation", best[0]) in used
    kept = prov4ml.list_parameters(logger.log_dir)
    assert (kept["rate"], kept["optimizer/SGD/lr"], kept["trainer/max_epochs"]) == (0.5, 0.5, 2)


class Searching(LearningRateFinder):
    """Searches for nothing."""

    def lr_find(self, *_: Any) -> None:
        """Leave the learning rate as it is."""


def test_ours_is_the_first_to_hear_behind_its_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    teacher = taught(prov4ml.ProvMLLogger(), Searching(), ModelCheckpoint())
    teacher.fit(Digits(), digits(), digits())
    assert [type(one).__name__ for one in teacher.callbacks] == [
        "Searching", "Lineage", "ModelCheckpoint",
    ]  # fmt: skip


def test_weights_that_are_saved_by_hand_are_versions_here_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    teacher = taught(logger := prov4ml.ProvMLLogger())
    teacher.fit(Digits(), digits(), digits())
    teacher.save_checkpoint("weights.ckpt", weights_only=True)
    prov4ml.end_run()
    told = json.loads(Path(logger.log_dir, "prov_version_0.json").read_text())["entity"].values()
    found = {one["dcterms:identifier"]: one for one in told if "provml:version" in one}
    own = {f"checkpoints/epoch={epoch}-step={step}.ckpt" for epoch, step in ((0, 4), (1, 8))}
    assert found.keys() == own | {str(tmp_path / "weights.ckpt")}
    assert found[str(tmp_path / "weights.ckpt")]["provml:step"] == teacher.global_step == 8
