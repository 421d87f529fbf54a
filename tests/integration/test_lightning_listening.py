"""How saves are heard of: whatever was set anew, and without a trace where it does not belong."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from lightning.fabric.plugins import CheckpointIO
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loops.prediction_loop import _PredictionLoop

import prov4ml
from provml_lightning.loggers.lineage.hearing import ListeningIO
from tests.stories import LabelledDisk, OwnWeights, SavesWeights, versions
from tests.training import Digits, digits, trainer


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


@pytest.mark.parametrize("kind", [Digits, OwnWeights])
def test_who_sets_another_writer_after_a_training_is_heard_all_the_same(kind: type[Digits]) -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger)
    teacher.fit(kind(), digits(), digits())
    teacher.strategy.checkpoint_io = roomy = LabelledDisk()
    teacher.save_checkpoint("one.ckpt", weights_only=True)
    assert isinstance(teacher.strategy.checkpoint_io, LabelledDisk)
    for weights_only in (False, True):
        teacher.strategy.checkpoint_io = LabelledDisk(full_at=teacher.global_step)
        with pytest.raises(OSError, match="No space left"):
            teacher.save_checkpoint("two.ckpt", weights_only=weights_only)
    teacher.strategy.checkpoint_io = roomy
    teacher.save_checkpoint("three.ckpt", weights_only=True)
    prov4ml.end_run()
    names = [Path(one["dcterms:identifier"]).name for one in versions(logger).values()]
    assert [name for name in names if "weights" not in name] == ["one.ckpt", "three.ckpt"]


class OwnLoop(_PredictionLoop):
    """Has a state that no other loop of Lightning's was asked for."""

    def state_dict(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize("kind", [_PredictionLoop, OwnLoop])
def test_who_sets_another_loop_is_heard_all_the_same(kind: type[_PredictionLoop]) -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger)
    for before in (True, False):
        if before:
            teacher.predict_loop = kind(teacher)
        teacher.fit(Digits(), digits(), digits())
        teacher.predict_loop = kind(teacher)
        for name in ("one", "two"):
            teacher.save_checkpoint(f"{name} {before}.ckpt", weights_only=True)
        teacher.fit_loop.max_epochs += 1
    prov4ml.end_run()
    names = [Path(one["dcterms:identifier"]).name for one in versions(logger).values()]
    assert names == ["one True.ckpt", "two True.ckpt", "one False.ckpt", "two False.ckpt"]


def test_neither_modules_nor_checkpoints_hold_anything_of_ours() -> None:
    models, files = (Digits(), Digits()), ("with.ckpt", "without.ckpt")
    for model, file, loggers in zip(models, files, ([prov4ml.ProvMLLogger()], []), strict=True):
        teacher = trainer(*loggers)
        teacher.fit(model, digits(), digits())
        teacher.save_checkpoint(file)
        assert teacher.predict(model, digits(), ckpt_path=file, weights_only=False) is not None
    ours, others = (torch.load(file, weights_only=False) for file in files)
    assert ours.keys() == others.keys()
    assert ours["loops"] == others["loops"]
    ours, others = (
        {name: repr(value) for name, value in vars(model).items() if "hook" in name}
        for model in models
    )
    assert ours == others
    assert vars(models[0]).keys() == vars(models[1]).keys()


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


@pytest.mark.parametrize("late", [False, True])
def test_ours_is_the_first_that_hears_of_a_stage_and_is_there_once(late: bool) -> None:
    logger, other = prov4ml.ProvMLLogger(), Callback()
    teacher = trainer(*([] if late else [logger]), callbacks=[other])
    assert teacher.callbacks == [other]
    teacher.logger = logger
    for _ in range(2):
        teacher.fit(Digits(), digits(), digits())
        assert teacher.callbacks == [logger.lineage_callback, other]
    teacher.logger = None
    teacher.test(Digits(), digits(), verbose=False)
    assert teacher.callbacks == [other]


def launch(trainer: Any, logger: Any) -> Any:
    """Send a logger elsewhere, with one that looks like a Trainer at hand."""
    assert type(trainer.strategy.launcher).__name__ == "Sender"
    return pickle.loads(pickle.dumps(logger))  # noqa: S301  as to another process


def test_who_only_looks_like_a_trainer_or_its_launcher_is_none() -> None:
    logger = prov4ml.ProvMLLogger("sent")
    looks_like_one = type("Trainer", (), {"strategy": SimpleNamespace(launcher=Sender())})()
    assert launch(looks_like_one, logger).name == "sent"
    looks_like_one.strategy.launcher.of(looks_like_one, logger)
    assert not Path("prov").exists()


class Sender:
    """Sends a Trainer to another process, one of its loops first."""

    def of(self, trainer: Any, logger: Any) -> None:
        trainer.predict_loop = logger
        self.launch(trainer)

    def launch(self, trainer: Any) -> bytes:
        return pickle.dumps(trainer.predict_loop)


def test_a_trainer_that_is_met_on_its_way_to_another_process_arrives_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, callbacks=[Callback()])
    teacher.predict_loop.log_book = logger
    monkeypatch.setattr(teacher.strategy, "_launcher", Sender())
    content = teacher.strategy.launcher.launch(teacher)
    sent = pickle.loads(content)  # noqa: S301  as to a process that is spawned
    assert type(sent.log_book) is prov4ml.ProvMLLogger
    assert sent.trainer.loggers == [sent.log_book]
    assert teacher.callbacks[0] is logger.lineage_callback
    assert not Path("prov").exists()
