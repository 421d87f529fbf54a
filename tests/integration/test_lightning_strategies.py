"""Strategies that let nobody listen to who writes checkpoints, or write them by themselves."""

from __future__ import annotations

import copy
import pickle
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


def test_a_strategy_that_writes_by_itself_is_heard_too() -> None:
    model, logger = SavesWeights(), prov4ml.ProvMLLogger()
    trainer(logger, strategy=Apart(), accelerator="auto").fit(model, digits(), digits())
    names = ("provml:step", "provml:epoch", "dcterms:identifier")
    told = [tuple(one[name] for name in names) for one in versions(logger).values()]
    assert told == model.reported


@pytest.mark.parametrize("kind", [Apart, lambda: Closed(device=torch.device("cpu"))])
@pytest.mark.filterwarnings("ignore::provml_lightning.errors.RecordDroppedWarning")
def test_model_checkpoints_of_weights_that_were_not_heard_of_are_versions(kind: Any) -> None:
    logger = prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint(monitor="val_loss", save_top_k=-1, save_weights_only=True)
    teacher = trainer(
        logger, enable_checkpointing=True, callbacks=[keeper], strategy=kind(), accelerator="auto"
    )
    teacher.fit(OwnWeights(), digits(), digits())
    own = [one for one in versions(logger).values() if "provml:score" in one]
    assert [one["provml:step"] for one in own] == [4, 8]
    scores = [float(score) for score in keeper.best_k_models.values()]
    assert [one["provml:score"] for one in own] == pytest.approx(scores)


def test_a_module_that_is_pickled_or_copied_holds_nothing_of_ours() -> None:
    model = Digits()
    teacher = trainer(prov4ml.ProvMLLogger(), strategy=Apart(), accelerator="auto")
    teacher.fit(model, digits(), digits())
    model.trainer = None  # type: ignore[assignment]
    content = pickle.dumps(model)
    assert b"provml" not in content
    for other in (pickle.loads(content), copy.deepcopy(model)):  # noqa: S301  our own bytes
        assert torch.equal(other.state_dict()["layer.weight"], model.layer.weight)
