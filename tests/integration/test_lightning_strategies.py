"""Strategies that let nobody listen to who writes checkpoints, or write them by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.strategies import SingleDeviceStrategy

import prov4ml
from tests.stories import Closed, OwnWeights, SavesWeights, versions
from tests.training import Digits, digits, trainer


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


class SavesByHand(Digits):
    def on_train_epoch_end(self) -> None:
        self.trainer.save_checkpoint(f"{self.current_epoch}.ckpt")


def test_a_strategy_that_cannot_be_listened_to_trains_on_with_one_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, strategy=Closed(device=torch.device("cpu")), accelerator="auto")
    teacher.fit(SavesByHand(), digits(), digits())
    assert [one["provml:step"] for one in versions(logger).values()] == [4, 8]
    (told,) = [str(one.message) for one in recwarn if "ListeningIO" in str(one.message)]
    assert "NotImplementedError" in told


class Apart(SingleDeviceStrategy):
    """Writes by itself, as those strategies do whose ranks write their own parts."""

    def __init__(self) -> None:
        super().__init__(device=torch.device("cpu"))

    def save_checkpoint(self, checkpoint: Any, filepath: Any, storage_options: Any = None) -> None:
        del storage_options
        Path(filepath).parent.mkdir(parents=True, exist_ok=True)
        torch.save(checkpoint, filepath)


@pytest.mark.filterwarnings("ignore::provml_lightning.errors.RecordDroppedWarning")
@pytest.mark.parametrize("module", [SavesWeights, OwnWeights])
@pytest.mark.parametrize("kind", [Apart, lambda: Closed(device=torch.device("cpu"))])
def test_weights_that_a_strategy_writes_by_itself_are_heard_of_too(
    kind: Any, module: type[SavesWeights]
) -> None:
    model, logger = module(), prov4ml.ProvMLLogger()
    trainer(logger, strategy=kind(), accelerator="auto").fit(model, digits(), digits())
    names = ("provml:step", "provml:epoch", "dcterms:identifier")
    told = [tuple(one[name] for name in names) for one in versions(logger).values()]
    assert told == model.reported


@pytest.mark.parametrize("kind", [Apart, lambda: Closed(device=torch.device("cpu"))])
@pytest.mark.filterwarnings("ignore::provml_lightning.errors.RecordDroppedWarning")
def test_model_checkpoints_of_weights_alone_have_their_score_under_each(kind: Any) -> None:
    logger = prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint(monitor="val_loss", save_top_k=-1, save_weights_only=True)
    teacher = trainer(
        logger, enable_checkpointing=True, callbacks=[keeper], strategy=kind(), accelerator="auto"
    )
    teacher.fit(OwnWeights(), digits(), digits())
    assert_has_scores(logger, keeper)


class Adapters(ModelCheckpoint):
    """Writes by itself what it keeps, and then says so to the loggers."""

    def _save_checkpoint(self, trainer: Any, filepath: str) -> None:
        Path(filepath).parent.mkdir(parents=True, exist_ok=True)
        torch.save(trainer.lightning_module.layer.state_dict(), filepath)
        for logger in trainer.loggers:
            logger.after_save_checkpoint(self)


def test_what_a_model_checkpoint_of_the_users_writes_by_itself_is_a_version() -> None:
    logger = prov4ml.ProvMLLogger()
    keeper = Adapters(monitor="val_loss", save_top_k=-1, save_weights_only=True)
    teacher = trainer(logger, enable_checkpointing=True, callbacks=[keeper])
    teacher.fit(Digits(), digits(), digits())
    assert_has_scores(logger, keeper)


def assert_has_scores(logger: Any, keeper: ModelCheckpoint) -> None:
    own = [one for one in versions(logger).values() if "provml:score" in one]
    assert [one["provml:step"] for one in own] == [4, 8]
    scores = [float(score) for score in keeper.best_k_models.values()]
    assert [one["provml:score"] for one in own] == pytest.approx(scores)
