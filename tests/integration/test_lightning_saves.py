"""Checkpoints that are saved by hand, that fail, that queue."""

from __future__ import annotations

import errno
import hashlib
import os
import warnings
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import Callback, ModelCheckpoint, OnExceptionCheckpoint
from lightning.pytorch.plugins.io import CheckpointIO, TorchCheckpointIO
from lightning.pytorch.strategies import SingleDeviceStrategy

import prov4ml
from tests.stories import relations, versions
from tests.training import Digits, digits, trainer


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


class SavesByHand(Digits):
    def on_train_epoch_end(self) -> None:
        self.trainer.save_checkpoint(f"by hand {self.current_epoch}.ckpt")


class FullDisk(TorchCheckpointIO):
    """Finds no room for the saves of some steps."""

    def __init__(self, *steps: int) -> None:
        self.steps = steps

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, **options: Any) -> None:
        if checkpoint["global_step"] in self.steps:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().save_checkpoint(checkpoint, path, **options)


class Saves(Callback):
    """Saves at one path after every epoch, whatever becomes of it, and goes elsewhere."""

    def __init__(self, path: str, then: str = ".") -> None:
        self.path = path
        self.then = then

    def on_train_epoch_end(self, trainer: Trainer, module: Any) -> None:
        del module
        with suppress(OSError):
            trainer.save_checkpoint(self.path)
        Path(self.then).mkdir(exist_ok=True)
        os.chdir(self.then)


def saved_by_hand(saves: Saves, disk: CheckpointIO) -> list[tuple[Any, Any]]:
    """Return step and place of the versions of a training of three epochs of four batches."""
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=3, callbacks=[saves], plugins=[disk])
    teacher.fit(Digits(), digits(), digits())
    found = versions(logger).values()
    return [(one["provml:step"], one["dcterms:identifier"]) for one in found]


@pytest.mark.parametrize("step", [4, 8])
def test_a_save_that_failed_is_no_version_and_lends_no_later_one_its_step(
    tmp_path: Path, step: int
) -> None:
    told = saved_by_hand(Saves("x.ckpt"), FullDisk(step))
    assert told == [(kept, str(tmp_path / "x.ckpt")) for kept in (4, 8, 12) if kept != step]


class StumpDisk(FullDisk):
    """Finds no room when it has written a beginning."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, **options: Any) -> None:
        try:
            super().save_checkpoint(checkpoint, path, **options)
        except OSError:
            Path(path).write_bytes(b"a beginning")
            raise


class Lenient(ModelCheckpoint):
    """Goes on when there is no room."""

    def _save_checkpoint(self, trainer: Trainer, filepath: str) -> None:
        with suppress(OSError):
            super()._save_checkpoint(trainer, filepath)


@pytest.mark.parametrize("weights_only", [False, True])
def test_a_stump_that_a_model_checkpoint_still_lists_never_becomes_a_version(
    weights_only: bool,
) -> None:
    logger = prov4ml.ProvMLLogger()
    keeper = Lenient(monitor="val_loss", save_top_k=-1, save_weights_only=weights_only)
    teacher = trainer(
        logger, max_epochs=3, enable_checkpointing=True, callbacks=[keeper],
        plugins=[StumpDisk(8)],
    )  # fmt: skip
    teacher.fit(Digits(), digits(), digits())
    teacher.fit_loop.max_epochs = 4
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Checkpoint directory .* exists and is not empty")
        teacher.fit(Digits(), digits(), digits())
    prov4ml.end_run()
    assert any(Path(path).read_bytes() == b"a beginning" for path in keeper.best_k_models)
    assert [one["provml:step"] for one in versions(logger).values()] == [4, 12, 16]


def test_a_stump_over_a_checkpoint_is_the_end_of_that_version() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=3, callbacks=[Saves("x.ckpt")], plugins=[StumpDisk(12)])
    teacher.fit(Digits(), digits(), digits())
    prov4ml.end_run()
    assert [one["provml:step"] for one in versions(logger).values()] == [4, 8]
    gone = {entity for (entity,) in relations(logger, "wasInvalidatedBy", "entity")}
    assert gone == set(versions(logger))


class Retries(SingleDeviceStrategy):
    """Saves again what could not be saved."""

    def save_checkpoint(self, *args: Any, **options: Any) -> None:
        for tried in range(2):
            with suppress(OSError) if tried == 0 else nullcontext():
                super().save_checkpoint(*args, **options)
                return


class OnceFull(StumpDisk):
    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, **options: Any) -> None:
        steps, full = self.steps, checkpoint["global_step"] in self.steps
        self.steps = tuple(step for step in steps if not full or step != checkpoint["global_step"])
        if full:
            Path(path).write_bytes(b"a beginning")
            raise OSError(errno.ENOSPC, "No space left on device")
        super().save_checkpoint(checkpoint, path, **options)


@pytest.mark.parametrize("weights_only", [False, True])
def test_a_save_that_failed_first_and_was_done_then_is_a_version(weights_only: bool) -> None:
    logger = prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint(monitor="val_loss", save_top_k=-1, save_weights_only=weights_only)
    teacher = trainer(
        logger, max_epochs=3, enable_checkpointing=True, callbacks=[keeper], accelerator="auto",
        strategy=Retries(device=torch.device("cpu"), checkpoint_io=OnceFull(8)),
    )  # fmt: skip
    teacher.fit(Digits(), digits(), digits())
    found = versions(logger).values()
    assert [one["provml:step"] for one in found] == [4, 8, 12]
    digests = [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in keeper.best_k_models]
    assert [one["provml:sha256"] for one in found] == digests


class AtFirst(Callback):
    """Saves before there was a step."""

    def setup(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        del pl_module
        if stage == "fit":
            trainer.save_checkpoint("set up.ckpt", weights_only=True)

    def on_fit_start(self, trainer: Trainer, pl_module: Any) -> None:
        del pl_module
        trainer.save_checkpoint("begun.ckpt")


def test_what_is_saved_before_a_training_has_begun_is_a_version_of_its_module() -> None:
    logger = prov4ml.ProvMLLogger()
    for _ in range(2):
        teacher = trainer(logger, max_epochs=1, callbacks=[AtFirst()])
        teacher.fit(Digits(), digits(), digits())
        teacher.save_checkpoint("trained.ckpt")
    prov4ml.end_run()
    found = versions(logger)
    names = [Path(one["dcterms:identifier"]).name for one in found.values()]
    assert names == ["set up.ckpt", "begun.ckpt", "trained.ckpt"] * 2
    assert [one["provml:step"] for one in found.values()] == [0, 0, 4] * 2
    chain = list(found)
    derived = relations(logger, "wasDerivedFrom", "generatedEntity", "usedEntity")
    assert [pair for pair in derived if pair[1] in chain] == [
        (chain[number], chain[number - 1]) for number in (1, 2, 4, 5)
    ]


class Atomic(Trainer):
    """Saves beside the path, and moves the file to its place."""

    def save_checkpoint(self, filepath: Any, *args: Any, **options: Any) -> None:
        beside = f"{filepath}.part"
        super().save_checkpoint(beside, *args, **options)
        Path(beside).rename(filepath)


def test_a_trainer_that_moves_its_files_into_place_has_them_there() -> None:
    logger = prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint(save_top_k=-1, filename="{step}")
    teacher = Atomic(
        accelerator="cpu", callbacks=[keeper], enable_model_summary=False,
        enable_progress_bar=False, log_every_n_steps=1, logger=[logger], max_epochs=2,
    )  # fmt: skip
    teacher.fit(Digits(), digits(), digits())
    teacher.save_checkpoint("by hand.ckpt", weights_only=True)
    prov4ml.end_run()
    names = [Path(one["dcterms:identifier"]).name for one in versions(logger).values()]
    assert names == ["step=4.ckpt", "step=8.ckpt", "by hand.ckpt"]


def test_what_lay_at_the_path_of_a_save_that_failed_is_no_version(tmp_path: Path) -> None:
    (tmp_path / "x.ckpt").write_bytes(b"of somebody else")
    assert saved_by_hand(Saves("x.ckpt"), FullDisk(4, 8, 12)) == []


def test_a_relative_path_is_that_of_the_save_though_the_working_folder_changes(
    tmp_path: Path,
) -> None:
    told = saved_by_hand(Saves("x.ckpt", then="below"), FullDisk())
    places = (tmp_path, tmp_path / "below", tmp_path / "below" / "below")
    assert [place for _, place in told] == [str(place / "x.ckpt") for place in places]


def test_what_is_saved_by_hand_in_and_after_a_training_is_kept_with_its_place() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger)
    teacher.fit(SavesByHand(), digits(), digits())
    teacher.save_checkpoint(Path("after.ckpt"))
    prov4ml.end_run()

    found = versions(logger)
    assert [one["dcterms:identifier"] for one in found.values()] == [
        str(Path(name).absolute()) for name in ("by hand 0.ckpt", "by hand 1.ckpt", "after.ckpt")
    ]
    assert [one["provml:step"] for one in found.values()] == [4, 8, teacher.global_step]
    made = dict(relations(logger, "wasGeneratedBy", "entity", "activity"))
    assert [made[one] for one in found] == [
        "context/Training", "context/Training", "run/lightning_logs_0",
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*fit.ckpt_path=")
def test_the_checkpoint_of_an_exception_is_a_version_of_the_failed_run() -> None:
    class Failing(Digits):
        def on_validation_epoch_end(self) -> None:
            raise RuntimeError("no more")

    logger = prov4ml.ProvMLLogger()
    keeper = OnExceptionCheckpoint(Path.cwd())
    with pytest.raises(RuntimeError, match="no more"):
        trainer(logger, callbacks=[keeper], enable_checkpointing=True).fit(
            Failing(), digits(), digits()
        )
    (found,) = versions(logger).values()
    assert found["dcterms:identifier"] == keeper.ckpt_path
    assert len(found["provml:sha256"]) == 64
