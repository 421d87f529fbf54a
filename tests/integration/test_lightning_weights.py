"""Saves of weights alone, which Lightning tells to no callback, and how they are heard of."""

from __future__ import annotations

import copy
import errno
import hashlib
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.fabric.plugins import CheckpointIO
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.plugins.io import AsyncCheckpointIO, TorchCheckpointIO
from lightning.pytorch.strategies import SingleDeviceStrategy

import prov4ml
from provml_lightning.loggers.lineage.hearing import ListeningIO
from tests.stories import relations, versions
from tests.training import Digits, digits, trainer


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


class SavesWeights(Digits):
    """Saves weights alone after every epoch, and takes down what the Trainer says then."""

    def __init__(self) -> None:
        super().__init__()
        self.reported: list[tuple[int, int, str]] = []

    def on_train_epoch_end(self) -> None:
        path = f"weights {self.current_epoch}.ckpt"
        self.reported.append((self.global_step, self.current_epoch, str(Path(path).absolute())))
        with suppress(OSError):
            self.trainer.save_checkpoint(path, weights_only=True)


class SavesByHand(Digits):
    def on_train_epoch_end(self) -> None:
        self.trainer.save_checkpoint(f"{self.current_epoch}.ckpt")


class OwnWeights(SavesWeights):
    """Gives weights that no torch module was asked for."""

    def state_dict(self, *_: Any, **__: Any) -> Any:
        return {"layer.weight": self.layer.weight, "layer.bias": self.layer.bias}


class LabelledDisk(TorchCheckpointIO):
    """A disk of the user's, with a full one at a step and a name."""

    def __init__(self, full_at: int = -1) -> None:
        self.full_at = full_at
        self.label = "scratch"

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, **options: Any) -> None:
        if checkpoint["global_step"] == self.full_at:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().save_checkpoint(checkpoint, path, **options)


def trained(model: SavesWeights, *plugins: CheckpointIO) -> tuple[Any, list[dict[str, Any]]]:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, plugins=list(plugins))
    teacher.fit(model, digits(), digits())
    teacher.save_checkpoint("after.ckpt", weights_only=True)
    model.reported.append(
        (teacher.global_step, teacher.current_epoch, str(Path("after.ckpt").absolute()))
    )
    prov4ml.end_run()
    return logger, list(versions(logger).values())


@pytest.mark.filterwarnings("ignore:.*AsyncCheckpointIO")
@pytest.mark.parametrize("kind", [SavesWeights, OwnWeights])
@pytest.mark.parametrize("disk", [None, LabelledDisk, AsyncCheckpointIO])
def test_weights_that_are_saved_by_hand_are_versions_as_the_trainer_reports_them(
    kind: type[SavesWeights], disk: type[CheckpointIO] | None
) -> None:
    model = kind()
    logger, found = trained(model, *([] if disk is None else [disk()]))
    names = ("provml:step", "provml:epoch", "dcterms:identifier")
    assert [tuple(one[name] for name in names) for one in found] == model.reported
    for one in found:
        file = Path(one["dcterms:identifier"])
        assert one["provml:sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
        assert "optimizer_states" not in torch.load(file, weights_only=False)
    made = dict(relations(logger, "wasGeneratedBy", "entity", "activity"))
    first, second, after = versions(logger)
    assert made[first] == made[second] == "context/Training"
    assert made[after] == "run/lightning_logs_0"
    derived = relations(logger, "wasDerivedFrom", "generatedEntity", "usedEntity")
    assert {(second, first), (after, second)} <= set(derived)


def test_of_weights_for_which_there_was_no_room_nothing_is_told() -> None:
    model = SavesWeights()
    _, found = trained(model, LabelledDisk(full_at=4))
    assert [one["provml:step"] for one in found] == [8, 8]
    assert [one["dcterms:identifier"] for one in found] == [
        path for _, _, path in model.reported[1:]
    ]


def test_two_loggers_hear_of_the_same_weights_once_each() -> None:
    both = prov4ml.ProvMLLogger("one"), prov4ml.ProvMLLogger("two")
    teacher = trainer(*both)
    model = SavesWeights()
    teacher.fit(model, digits(), digits())
    teacher.fit_loop.max_epochs = 3
    teacher.fit(model, digits(), digits())
    for logger in both:
        steps = [one["provml:step"] for one in versions(logger).values()]
        assert steps == [step for step, *_ in model.reported] == [4, 8, 12]


def test_what_the_user_gave_to_write_checkpoints_is_still_what_he_finds() -> None:
    disk = LabelledDisk()
    teacher = trainer(prov4ml.ProvMLLogger(), plugins=[disk])
    teacher.fit(SavesWeights(), digits(), digits())
    found: Any = teacher.strategy.checkpoint_io
    assert isinstance(found, LabelledDisk)
    assert isinstance(found, CheckpointIO)
    assert found.label == "scratch"
    found.label = "elsewhere"
    assert disk.label == "elsewhere"
    with pytest.raises(AttributeError, match="'LabelledDisk' object has no attribute 'colour'"):
        _ = found.colour
    sent = pickle.loads(pickle.dumps(found))  # noqa: S301  as to a process that is spawned
    for other in (sent, copy.deepcopy(found)):
        assert type(other) is ListeningIO
        assert other.label == "elsewhere"


class Another(Callback):
    """Hears nothing that it is not told by Lightning."""


@pytest.mark.parametrize("lineage", [False, ["stages", "data", "model"]])
def test_who_wants_no_checkpoints_keeps_the_trainer_as_it_is(lineage: Any) -> None:
    disk = LabelledDisk()
    logger = prov4ml.ProvMLLogger(lineage=lineage)
    teacher = trainer(logger, plugins=[disk], callbacks=[Another()])
    teacher.fit(SavesWeights(), digits(), digits())
    assert teacher.strategy.checkpoint_io is disk
    prov4ml.end_run()
    assert versions(logger) == {}


def test_weights_that_a_trainer_saves_which_never_ran_are_no_run() -> None:
    teacher = trainer(prov4ml.ProvMLLogger())
    teacher.strategy.connect(Digits())
    teacher.save_checkpoint("whole.ckpt")
    teacher.save_checkpoint("weights.ckpt", weights_only=True)
    assert Path("weights.ckpt").exists()
    assert not Path("prov").exists()


class Closed(SingleDeviceStrategy):
    """Lets nobody choose who writes its checkpoints once it is made."""

    @property
    def checkpoint_io(self) -> CheckpointIO:
        return super().checkpoint_io

    @checkpoint_io.setter
    def checkpoint_io(self, io: CheckpointIO) -> None:
        raise NotImplementedError(f"no {type(io).__name__}")


def test_a_strategy_that_cannot_be_listened_to_trains_on_with_one_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, strategy=Closed(device=torch.device("cpu")), accelerator="auto")
    teacher.fit(SavesByHand(), digits(), digits())
    assert [one["provml:step"] for one in versions(logger).values()] == [4, 8]
    (told,) = [str(one.message) for one in recwarn if "ListeningIO" in str(one.message)]
    assert "NotImplementedError" in told


def test_weights_alone_of_a_model_checkpoint_are_told_once_with_their_score() -> None:
    logger = prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint(monitor="val_loss", save_top_k=-1, save_weights_only=True)
    teacher = trainer(logger, enable_checkpointing=True, callbacks=[keeper])
    teacher.fit(Digits(), digits(), digits())
    scores = [one["provml:score"] for one in versions(logger).values()]
    assert scores == pytest.approx([float(score) for score in keeper.best_k_models.values()])
