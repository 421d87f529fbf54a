"""Checkpoints that a thread writes, later than they are asked for."""

from __future__ import annotations

import errno
import hashlib
import json
import threading
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from lightning.fabric.plugins import CheckpointIO
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.plugins.io import AsyncCheckpointIO, TorchCheckpointIO

import prov4ml
from provml_lightning.loggers.lineage import expected
from tests.stories import Diary, LabelledDisk, document, relations, versions
from tests.training import Digits, digits, trainer

if TYPE_CHECKING:
    from lightning.pytorch import Trainer


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


class SlowDisk(TorchCheckpointIO):
    """Writes nothing before the last save was asked for."""

    def __init__(self) -> None:
        self.all_are_asked_for = threading.Event()

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, **options: Any) -> None:
        self.all_are_asked_for.wait()
        super().save_checkpoint(checkpoint, path, **options)


class SavesSlowly(Callback):
    """Saves at one path after every epoch."""

    def __init__(self, path: str, disk: SlowDisk) -> None:
        self.path = path
        self.disk = disk

    def on_train_epoch_end(self, trainer: Trainer, module: Any) -> None:
        del module
        trainer.save_checkpoint(self.path)

    def on_train_end(self, trainer: Trainer, module: Any) -> None:
        del trainer, module
        self.disk.all_are_asked_for.set()


def test_of_saves_that_queue_for_one_path_the_last_was_seen(tmp_path: Path) -> None:
    disk, logger = SlowDisk(), prov4ml.ProvMLLogger()
    callbacks = [SavesSlowly("x.ckpt", disk)]
    teacher = trainer(logger, max_epochs=3, callbacks=callbacks, plugins=[AsyncCheckpointIO(disk)])
    teacher.fit(Digits(), digits(), digits())
    *unseen, last = versions(logger).values()
    path = str(tmp_path / "x.ckpt")
    assert (last["provml:step"], last["dcterms:identifier"]) == (12, path)
    assert last["provml:sha256"] == hashlib.sha256(Path(path).read_bytes()).hexdigest()
    assert [(one["provml:step"], one["provml:location"]) for one in unseen] == [
        (4, path),
        (8, path),
    ]
    assert not any("dcterms:identifier" in one or "provml:sha256" in one for one in unseen)


class InParts(TorchCheckpointIO):
    """Writes a beginning first, and takes its time; finds no room for some."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, **options: Any) -> None:
        Path(path).write_bytes(b"a beginning")
        time.sleep(0.3)
        if "full" in str(path):
            raise OSError(errno.ENOSPC, "No space left on device")
        super().save_checkpoint(checkpoint, path, **options)


class Through(CheckpointIO):
    """Lets another one do the work."""

    def __init__(self, checkpoint_io: CheckpointIO) -> None:
        self.checkpoint_io = checkpoint_io

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, **options: Any) -> None:
        self.checkpoint_io.save_checkpoint(checkpoint, path, **options)

    def load_checkpoint(self, path: Any, **options: Any) -> Any:
        return self.checkpoint_io.load_checkpoint(path, **options)

    def remove_checkpoint(self, path: Any) -> None:
        self.checkpoint_io.remove_checkpoint(path)

    def teardown(self) -> None:
        self.checkpoint_io.teardown()


@pytest.mark.filterwarnings("ignore:.*AsyncCheckpointIO")
@pytest.mark.parametrize("around", [lambda io: io, Through])
def test_what_a_thread_writes_is_looked_at_when_it_has_ended(around: Any) -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, plugins=[around(AsyncCheckpointIO(InParts()))])
    teacher.fit(Digits(), digits(), digits())
    for name in ("one", "full", "two", "full too"):
        with suppress(OSError):  # that of an earlier one
            teacher.save_checkpoint(f"{name}.ckpt")
        time.sleep(0.1)
    with suppress(OSError):
        teacher.strategy.teardown()
    prov4ml.end_run()
    found = list(versions(logger).values())
    assert [Path(one["dcterms:identifier"]).name for one in found] == ["one.ckpt", "two.ckpt"]
    for one in found:
        content = Path(one["dcterms:identifier"]).read_bytes()
        assert one["provml:sha256"] == hashlib.sha256(content).hexdigest()
        assert one["yprov:file_size"] == len(content)


@pytest.mark.filterwarnings("ignore:.*AsyncCheckpointIO")
@pytest.mark.parametrize("kept", [1, 2, -1])
def test_checkpoints_that_a_thread_writes_are_those_of_one_that_waits(kept: int) -> None:
    """Compare what is told, but for times and digests, which differ from training to training."""

    def told(*plugins: CheckpointIO) -> tuple[list[Any], set[Any], dict[str, Any]]:
        torch.manual_seed(7)
        logger = prov4ml.ProvMLLogger()
        keeper, diary = ModelCheckpoint(monitor="val_loss", save_top_k=kept), Diary()
        teacher = trainer(
            logger, max_epochs=4, enable_checkpointing=True,
            callbacks=[diary, keeper], plugins=list(plugins),
        )  # fmt: skip
        teacher.fit(Digits(), digits(), digits())
        prov4ml.end_run()
        found = versions(logger)
        names = ("epoch", "step", "score", "is_best", "is_last")
        facts = [
            [one["dcterms:identifier"], *(one.get(f"provml:{name}") for name in names)]
            for one in found.values()
        ]
        assert [one[3] for one in facts] == [saved["score"] for saved in diary.saved]
        gone = {entity for (entity,) in relations(logger, "wasInvalidatedBy", "entity")}
        digests = {
            one["provml:sha256"]: hashlib.sha256(file.read_bytes()).hexdigest()
            for key, one in found.items()
            if key not in gone and (file := Path(logger.log_dir, one["dcterms:identifier"]))
        }
        return facts, gone, digests

    facts, gone, digests = told(AsyncCheckpointIO())
    assert (facts, gone) == told()[:2]
    assert all(own == there for own, there in digests.items())
    assert len(facts) == 4
    assert len(digests) == (4 if kept == -1 else kept)


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
    monkeypatch.setattr(expected, "_LONGEST_WAIT", 1000.0)
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, plugins=[AsyncCheckpointIO(LabelledDisk(full_at=8))])
    teacher.fit(Digits(), digits(), digits())
    with suppress(OSError):  # Lightning raises it here, if the thread was fast
        teacher.save_checkpoint("x.ckpt", weights_only=True)
    prov4ml.end_run()
    assert Path("x.ckpt").read_bytes() == b"a beginning"
    with suppress(OSError):
        teacher.strategy.teardown()


class Held(TorchCheckpointIO):
    """Writes a beginning, and the rest when it is let."""

    def __init__(self) -> None:
        self.is_let = threading.Event()

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, **options: Any) -> None:
        Path(path).write_bytes(b"a beginning")
        self.is_let.wait()
        super().save_checkpoint(checkpoint, path, **options)


@pytest.mark.filterwarnings("ignore::provml_lightning.errors.RecordDroppedWarning")
@pytest.mark.parametrize("fails", [False, True])
def test_what_takes_longer_than_anybody_waits_is_told_when_it_is_there(
    fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expected, "_LONGEST_WAIT", 0.05)
    logger, disk = prov4ml.ProvMLLogger(), Held()

    class Saves(Callback):
        def on_train_epoch_end(self, trainer: Trainer, module: Any) -> None:
            del module
            trainer.save_checkpoint("x.ckpt")
            if fails:
                raise ValueError("the user's own")

    teacher = trainer(logger, max_epochs=1, callbacks=[Saves()], plugins=[AsyncCheckpointIO(disk)])
    monkeypatch.setattr(teacher.strategy, "teardown", lambda: None)  # which would wait
    with pytest.raises(ValueError, match="own") if fails else nullcontext():
        teacher.fit(Digits(), digits(), digits())
    assert versions(logger) == {}
    assert "x.ckpt: it was still being written" in json.dumps(document(logger))
    disk.is_let.set()
    teacher.test(Digits(), digits(), verbose=False)
    (found,) = versions(logger).values()
    content = Path("x.ckpt").read_bytes()
    assert (found["provml:step"], found["yprov:file_size"]) == (4, len(content))
    assert found["provml:sha256"] == hashlib.sha256(content).hexdigest()


@pytest.mark.filterwarnings("ignore:.*AsyncCheckpointIO")
def test_a_stump_over_one_that_was_queued_is_the_end_of_that() -> None:
    logger, disk = prov4ml.ProvMLLogger(), LastFull()
    teacher = trainer(logger, plugins=[AsyncCheckpointIO(disk)])
    teacher.fit(Digits(), digits(), digits())
    for _ in range(2):
        with suppress(OSError):
            teacher.save_checkpoint("x.ckpt")
    with suppress(OSError):
        teacher.strategy.teardown()
    prov4ml.end_run()
    assert Path("x.ckpt").read_bytes() == b"a beginning"
    (found,) = versions(logger).values()
    assert "provml:sha256" not in found
    assert "yprov:file_size" not in found
    assert "provml:is_last" not in found


class LastFull(TorchCheckpointIO):
    """Has room for one save."""

    def __init__(self) -> None:
        self.saves = 0

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, **options: Any) -> None:
        time.sleep(0.1)
        self.saves += 1
        if self.saves > 1:
            Path(path).write_bytes(b"a beginning")
            raise OSError(errno.ENOSPC, "No space left on device")
        super().save_checkpoint(checkpoint, path, **options)


@pytest.mark.filterwarnings("ignore:.*AsyncCheckpointIO")
def test_the_errors_of_one_thread_are_told_apart() -> None:
    writer, disk = AsyncCheckpointIO(LastFull()), LastFull()
    both = prov4ml.ProvMLLogger("one"), prov4ml.ProvMLLogger("other")
    one, other = (trainer(logger, max_epochs=1, plugins=[writer]) for logger in both)
    for teacher in (one, other):
        teacher.fit(Digits(), digits(), digits())
    writer._checkpoint_io = disk  # noqa: SLF001  its setter takes none any more
    for number, teacher in enumerate([one, one, one, other]):
        disk.saves = 0 if teacher is other else disk.saves
        with suppress(OSError):
            teacher.save_checkpoint(f"{number}.ckpt")
        time.sleep(0.3)
    for teacher in (one, other):
        with suppress(OSError):
            teacher.test(Digits(), digits(), verbose=False)
    for logger, names in zip(both, (["0.ckpt"], ["3.ckpt"]), strict=True):
        found = versions(logger).values()
        assert [Path(one["dcterms:identifier"]).name for one in found] == names
    with suppress(OSError):
        writer.teardown()
