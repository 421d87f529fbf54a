"""Saves of weights alone, which Lightning tells to no callback, and how they are heard of."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.plugins.io import AsyncCheckpointIO

import prov4ml
from tests.stories import LabelledDisk, OwnWeights, SavesWeights, relations, versions
from tests.training import Digits, digits, trainer

if TYPE_CHECKING:
    from lightning.fabric.plugins import CheckpointIO


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


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


@pytest.mark.parametrize("lineage", [False, ["stages", "data", "model"]])
def test_who_wants_no_checkpoints_keeps_the_trainer_as_it_is(lineage: Any) -> None:
    disk = LabelledDisk()
    logger = prov4ml.ProvMLLogger(lineage=lineage)
    teacher = trainer(logger, plugins=[disk], callbacks=[Callback()])
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


def test_what_is_saved_after_the_end_of_the_run_goes_on_with_it() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger)
    teacher.fit(Digits(), digits(), digits())
    prov4ml.end_run()
    for path in ("whole.ckpt", "weights.ckpt"):
        teacher.save_checkpoint(path, weights_only=path == "weights.ckpt")
    prov4ml.end_run()
    found = versions(logger).values()
    names = [(Path(one["dcterms:identifier"]).name, one["provml:step"]) for one in found]
    assert names == [("whole.ckpt", 8), ("weights.ckpt", 8)]


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
