"""Saves of weights alone, which Lightning tells to no callback, and how they are heard of."""

from __future__ import annotations

import copy
import errno
import hashlib
import pickle
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.fabric.plugins import CheckpointIO
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.plugins.io import AsyncCheckpointIO, TorchCheckpointIO

import prov4ml
from provml_lightning.loggers.lineage import saving
from provml_lightning.loggers.lineage.hearing import ListeningIO
from tests.stories import OwnWeights, SavesWeights, relations, versions
from tests.training import Digits, digits, trainer


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


class LabelledDisk(TorchCheckpointIO):
    """A disk of the user's, with a full one at a step and a name."""

    def __init__(self, full_at: int = -1) -> None:
        self.full_at = full_at
        self.label = "scratch"

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, **options: Any) -> str:
        if checkpoint["global_step"] == self.full_at:
            Path(path).write_bytes(b"a beginning")
            raise OSError(errno.ENOSPC, "No space left on device")
        super().save_checkpoint(checkpoint, path, **options)
        return "kept"


def trained(model: SavesWeights, *plugins: CheckpointIO) -> tuple[Any, list[dict[str, Any]]]:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, plugins=list(plugins))
    teacher.fit(model, digits(), digits())
    teacher.save_checkpoint("after.ckpt", weights_only=True)
    model.reported.append(
        (teacher.global_step, teacher.current_epoch, str(Path("after.ckpt").absolute()))
    )
    prov4ml.end_run()
    teacher.strategy.teardown()  # ends the thread that writes, if there is one
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


def test_of_weights_for_which_there_was_too_little_room_nothing_is_told() -> None:
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
    assert found.save_checkpoint({"global_step": 0}, "by itself.pt") == "kept"
    assert repr(found) == repr(disk)
    found.note = 1
    del found.note
    assert not hasattr(disk, "note")
    copied = copy.copy(found)
    copied.label = "of the copy"
    assert found.label == "elsewhere"
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


def test_weights_alone_of_a_model_checkpoint_are_told_once_with_their_score() -> None:
    logger = prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint(monitor="val_loss", save_top_k=-1, save_weights_only=True)
    teacher = trainer(logger, enable_checkpointing=True, callbacks=[keeper])
    teacher.fit(Digits(), digits(), digits())
    scores = [one["provml:score"] for one in versions(logger).values()]
    assert scores == pytest.approx([float(score) for score in keeper.best_k_models.values()])


def test_what_is_saved_after_a_training_is_told_at_once_though_it_goes_at_once() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger)
    teacher.fit(Digits(), digits(), digits())
    for path in ("whole.ckpt", "weights.ckpt"):
        teacher.save_checkpoint(path, weights_only=path == "weights.ckpt")
        Path(path).unlink()
    prov4ml.end_run()
    found = versions(logger)
    names = [Path(one["dcterms:identifier"]).name for one in found.values()]
    assert names == ["whole.ckpt", "weights.ckpt"]
    gone = {entity for (entity,) in relations(logger, "wasInvalidatedBy", "entity")}
    assert gone == set(found)


@pytest.mark.parametrize("weights_only", [False, True])
def test_a_save_into_a_folder_that_cannot_be_made_is_no_version(weights_only: bool) -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger)
    teacher.fit(Digits(), digits(), digits())
    Path("file").touch()
    with pytest.raises(OSError, match="file"):
        teacher.save_checkpoint("file/x.ckpt", weights_only=weights_only)
    prov4ml.end_run()
    assert versions(logger) == {}


def test_who_takes_the_logger_away_ends_its_story() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger)
    teacher.fit(model := SavesWeights(), digits(), digits())
    teacher.logger = None
    teacher.save_checkpoint("x.ckpt", weights_only=True)
    teacher.fit_loop.max_epochs = 3
    teacher.fit(model, digits(), digits())
    prov4ml.end_run()
    assert [one["provml:step"] for one in versions(logger).values()] == [4, 8]
    assert prov4ml.get_metric(logger.log_dir, "epoch_time", "Training")["step"].tolist() == [3, 7]


class Settings:
    every = 1


class Saver:
    """Looks like a Trainer, to somebody who only looks at names."""

    def __init__(self, teacher: Any) -> None:
        self.trainer = teacher
        self.callbacks = Settings()

    def save_checkpoint(self, path: str, weights_only: Any = True) -> None:
        self.trainer.save_checkpoint(path)
        del weights_only


def test_others_may_save_checkpoints_under_the_same_names() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger)
    teacher.fit(Digits(), digits(), digits())
    Saver(teacher).save_checkpoint("one.ckpt", weights_only=torch.ones(2))
    Saver(teacher).save_checkpoint("two.ckpt")
    prov4ml.end_run()
    names = [Path(one["dcterms:identifier"]).name for one in versions(logger).values()]
    assert names == ["one.ckpt", "two.ckpt"]


@pytest.mark.filterwarnings("ignore:.*AsyncCheckpointIO")
def test_checkpoints_that_a_thread_writes_come_in_the_order_of_their_saves() -> None:
    logger = prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint(
        save_top_k=-1, every_n_train_steps=2, save_last=True, save_weights_only=True
    )
    teacher = trainer(
        logger, enable_checkpointing=True, callbacks=[keeper],
        plugins=[AsyncCheckpointIO(Slow())],
    )  # fmt: skip
    teacher.fit(Digits(), digits(), digits())
    found = versions(logger)
    steps = [one["provml:step"] for one in found.values()]
    assert steps == sorted(steps)  # last.ckpt may be seen before the next one lies there
    assert steps[-2:] == [8, 8]
    assert next(reversed(found.values()))["dcterms:identifier"] == "checkpoints/last.ckpt"


class Slow(TorchCheckpointIO):
    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, **options: Any) -> None:
        time.sleep(0.05)
        super().save_checkpoint(checkpoint, path, **options)


@pytest.mark.filterwarnings("ignore:.*AsyncCheckpointIO")
def test_nobody_waits_for_what_a_thread_could_not_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "_LONGEST_WAIT", 1000.0)
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, plugins=[AsyncCheckpointIO(LabelledDisk(full_at=8))])
    teacher.fit(Digits(), digits(), digits())
    with suppress(OSError):  # Lightning raises it here, if the thread was fast
        teacher.save_checkpoint("x.ckpt", weights_only=True)
    prov4ml.end_run()
    assert Path("x.ckpt").read_bytes() == b"a beginning"
    with suppress(OSError):
        teacher.strategy.teardown()
