"""Checkpoints are versions of the model: made, scored, marked, deleted, and trained on from."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint, OnExceptionCheckpoint
from lightning.pytorch.plugins.io import AsyncCheckpointIO, CheckpointIO, TorchCheckpointIO

import prov4ml
from provml_lightning.exporters.crate import write_crate
from provml_lightning.loggers.lineage import checkpoints as module_of_checkpoints
from tests.conformance.prov.checker import complaints
from tests.conformance.prov.reading import parse
from tests.training import Digits, digits, trainer

if TYPE_CHECKING:
    from lightning.pytorch import Trainer

Entity = dict[str, Any]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


def document(logger: Any) -> dict[str, Any]:
    """Return a run's document, which holds all constraints of PROV."""
    directory = Path(logger.log_dir)
    content = (directory / f"prov_{directory.name}.json").read_bytes()
    assert complaints(parse(content)) == []
    read: dict[str, Any] = json.loads(content)
    return read


def versions(logger: Any) -> dict[str, Entity]:
    """Return the versions of models by id, in the order in which they were made."""
    entities = document(logger)["entity"].items()
    found = {key: one for key, one in entities if "provml:version" in one}
    return dict(sorted(found.items(), key=lambda item: int(item[1]["provml:version"])))


def relations(logger: Any, kind: str, *names: str) -> list[tuple[Any, ...]]:
    found = document(logger).get(kind, {}).values()
    return [tuple(one.get(f"prov:{name}") for name in names) for one in found]


def paths(logger: Any, **marks: Any) -> list[str]:
    return [
        str(Path(logger.log_dir, one["dcterms:identifier"]))
        for one in versions(logger).values()
        if all(one.get(f"provml:{name}") == value for name, value in marks.items())
    ]


class Diary(Callback):
    """Takes down what the Trainer reports whenever it saves."""

    def __init__(self) -> None:
        self.saved: list[dict[str, Any]] = []

    def on_save_checkpoint(self, trainer: Trainer, module: Any, checkpoint: dict[str, Any]) -> None:
        del module
        self.saved.append(
            {
                "epoch": checkpoint["epoch"],
                "step": checkpoint["global_step"],
                "score": float(trainer.callback_metrics["val_loss"]),
                "time": datetime.now(UTC),
            }
        )


def fitted(logger: Any, **options: Any) -> tuple[Trainer, ModelCheckpoint, Diary]:
    keeper = ModelCheckpoint(**{"monitor": "val_loss", **options})
    diary = Diary()
    teacher = trainer(logger, max_epochs=4, enable_checkpointing=True, callbacks=[diary, keeper])
    teacher.fit(Digits(), digits(), digits())
    return teacher, keeper, diary


def test_every_checkpoint_is_a_version_with_what_the_trainer_said_of_it() -> None:
    logger = prov4ml.ProvMLLogger()
    _, keeper, diary = fitted(logger, save_top_k=-1)

    found = list(versions(logger).values())
    assert [one["prov:label"] for one in found] == [f"Digits_{number}" for number in range(4)]
    for one, saved in zip(found, diary.saved, strict=True):
        assert (one["provml:epoch"], one["provml:step"]) == (saved["epoch"], saved["step"])
        assert one["provml:score"] == saved["score"]
        assert (one["provml:monitor"], one["provml:mode"]) == (keeper.monitor, keeper.mode)
        path = Path(logger.log_dir, one["dcterms:identifier"])
        assert one["provml:score"] == float(keeper.best_k_models[str(path)])
        assert one["yprov:file_size"] == path.stat().st_size
        assert one["provml:sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert not list(Path(logger.log_dir, "artifacts").rglob("*.ckpt"))


def test_each_version_is_made_by_the_training_and_comes_from_the_one_before() -> None:
    logger = prov4ml.ProvMLLogger()
    _, _, diary = fitted(logger, save_top_k=-1)

    ids = list(versions(logger))
    made = dict(relations(logger, "wasGeneratedBy", "entity", "activity"))
    assert {made[one] for one in ids} == {"context/Training"}
    derived = relations(logger, "wasDerivedFrom", "generatedEntity", "usedEntity")
    assert [pair for pair in derived if pair[0] in ids] == [
        (ids[0], "dataset/Training/train/lightning"),
        *zip(ids[1:], ids, strict=False),
    ]
    times = {one[0]: one[1] for one in relations(logger, "wasGeneratedBy", "entity", "time")}
    for one, saved in zip(ids, diary.saved, strict=True):
        assert datetime.fromisoformat(times[one]) >= saved["time"].replace(microsecond=0)


def test_the_best_and_the_last_are_those_of_the_callback() -> None:
    logger = prov4ml.ProvMLLogger()
    _, keeper, _ = fitted(logger, save_top_k=2, save_last=True)
    assert paths(logger, is_best=True) == [keeper.best_model_path]
    last = [one for one in versions(logger).values() if one.get("provml:is_last")]
    assert [str(Path(logger.log_dir, one["dcterms:identifier"])) for one in last] == [
        keeper.last_model_path
    ]
    assert last[0]["provml:epoch"] == 3


def test_where_none_is_kept_as_the_last_it_is_the_one_made_last() -> None:
    logger = prov4ml.ProvMLLogger()
    _, keeper, _ = fitted(logger, save_top_k=-1)
    assert paths(logger, is_last=True) == [
        max(keeper.best_k_models, key=lambda p: Path(p).stat().st_mtime_ns)
    ]


def test_a_last_checkpoint_that_is_a_link_marks_what_it_leads_to() -> None:
    logger = prov4ml.ProvMLLogger()
    _, keeper, _ = fitted(logger, save_top_k=-1, save_last="link")
    assert Path(keeper.last_model_path).is_symlink()
    assert paths(logger, is_last=True) == [str(Path(keeper.last_model_path).resolve())]


def test_deleted_checkpoints_stay_as_versions_that_are_no_more() -> None:
    logger = prov4ml.ProvMLLogger()
    _, keeper, diary = fitted(logger, save_top_k=1)

    found = versions(logger)
    there = {
        key
        for key, one in found.items()
        if Path(logger.log_dir, one["dcterms:identifier"]).exists()
    }
    assert len(found) == 4
    assert [str(Path(logger.log_dir, found[key]["dcterms:identifier"])) for key in there] == [
        keeper.best_model_path
    ]
    gone = relations(logger, "wasInvalidatedBy", "entity", "activity", "time")
    assert {entity for entity, *_ in gone} == found.keys() - there
    assert {activity for _, activity, _ in gone} == {"context/Training"}
    after = [saved["time"] for saved in diary.saved[1:]]
    for (_, _, time), saved in zip(sorted(gone, key=lambda one: one[2]), after, strict=True):
        # Each went when the next was there; a file system's clock is some milliseconds late.
        assert abs((datetime.fromisoformat(time) - saved).total_seconds()) < 5


def test_run_json_lists_the_checkpoints_that_are_there() -> None:
    logger = prov4ml.ProvMLLogger()
    _, keeper, _ = fitted(logger, save_top_k=1)
    files = json.loads(Path(logger.log_dir, "run.json").read_text())["files"]
    listed = [one["path"] for one in files if one["path"].endswith(".ckpt")]
    assert [str(Path(logger.log_dir, one)) for one in listed] == [keeper.best_model_path]


def test_a_checkpoint_that_is_overwritten_is_two_versions() -> None:
    logger = prov4ml.ProvMLLogger()
    _, keeper, _ = fitted(logger, save_top_k=0, save_last=True, monitor=None)
    found = versions(logger)
    assert {str(Path(logger.log_dir, one["dcterms:identifier"])) for one in found.values()} == {
        keeper.last_model_path
    }
    gone = {entity for (entity,) in relations(logger, "wasInvalidatedBy", "entity")}
    assert gone == set(list(found)[:-1])


def test_checkpoints_of_weights_alone_are_versions_too() -> None:
    logger = prov4ml.ProvMLLogger()
    _, keeper, diary = fitted(logger, save_top_k=-1, save_weights_only=True)
    found = list(versions(logger).values())
    assert diary.saved == []  # Lightning announces none of them
    assert [one["provml:epoch"] for one in found] == [0, 1, 2, 3]
    assert paths(logger) == list(keeper.best_k_models)


def test_a_checkpoint_elsewhere_is_told_by_its_path_there_and_not_copied(tmp_path: Path) -> None:
    logger = prov4ml.ProvMLLogger()
    _, keeper, _ = fitted(logger, dirpath=tmp_path / "scratch", save_top_k=1)
    (found,) = [one for one in versions(logger).values() if one.get("provml:is_best")]
    assert found["dcterms:identifier"] == keeper.best_model_path
    digest = hashlib.sha256(Path(keeper.best_model_path).read_bytes()).hexdigest()
    assert found["provml:sha256"] == digest
    assert not list(Path(logger.log_dir).rglob("*.ckpt"))


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


class SlowDisk(TorchCheckpointIO):
    """Writes nothing before the last save was asked for."""

    def __init__(self) -> None:
        self.all_are_asked_for = threading.Event()

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, **options: Any) -> None:
        self.all_are_asked_for.wait()
        super().save_checkpoint(checkpoint, path, **options)


class SavesSlowly(Saves):
    def __init__(self, path: str, disk: SlowDisk) -> None:
        super().__init__(path)
        self.disk = disk

    def on_train_end(self, trainer: Trainer, module: Any) -> None:
        del trainer, module
        self.disk.all_are_asked_for.set()


def test_of_saves_that_queue_for_one_path_the_last_is_told(tmp_path: Path) -> None:
    disk = SlowDisk()
    told = saved_by_hand(SavesSlowly("x.ckpt", disk), AsyncCheckpointIO(disk))
    assert told == [(12, str(tmp_path / "x.ckpt"))]


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


def test_nothing_of_ours_is_in_a_checkpoint() -> None:
    logger = prov4ml.ProvMLLogger()
    _, keeper, _ = fitted(logger)
    kept = torch.load(keeper.best_model_path, weights_only=False)
    assert not [key for key in kept["callbacks"] if "ModelCheckpoint" not in key]


def test_a_test_of_a_checkpoint_uses_its_version() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher, keeper, _ = fitted(logger, save_top_k=-1)
    model = Digits()
    teacher.test(model, digits(), ckpt_path=keeper.best_model_path, verbose=False)

    (best,) = [key for key, one in versions(logger).items() if one.get("provml:is_best")]
    assert ("context/Testing", best) in relations(logger, "used", "activity", "entity")
    assert len(versions(logger)) == 4


@pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`")
@pytest.mark.filterwarnings("ignore:Checkpoint directory")
def test_a_training_that_goes_back_to_a_checkpoint_of_its_own_goes_on_from_that() -> None:
    logger = prov4ml.ProvMLLogger()
    _, keeper, _ = fitted(logger, save_top_k=-1)
    second = next(path for path in keeper.best_k_models if "epoch=1" in path)
    for again in (logger, prov4ml.ProvMLLogger(version=0)):  # in this process, and in a later one
        teacher = trainer(again, max_epochs=3, enable_checkpointing=True)
        teacher.fit(Digits(), digits(), digits(), ckpt_path=second)
        prov4ml.end_run()

    found = versions(logger)
    origin = next(key for key, one in found.items() if one["provml:epoch"] == 1)
    derived = relations(logger, "wasDerivedFrom", "generatedEntity", "usedEntity")
    assert [pair for pair in derived if pair[0] in list(found)[4:]] == [
        (key, origin) for key in list(found)[4:]
    ]
    used = relations(logger, "used", "activity", "entity")
    assert used.count(("context/Training", origin)) == 2


@pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`")
def test_a_training_that_goes_on_from_another_run_says_from_which_and_from_what() -> None:
    first = prov4ml.ProvMLLogger(name="first")
    _, keeper, _ = fitted(first, save_top_k=-1)
    prov4ml.end_run()
    theirs = next(key for key, one in versions(first).items() if "provml:is_best" in one)

    second = prov4ml.ProvMLLogger(name="second")
    teacher = trainer(second, max_epochs=5, enable_checkpointing=True)
    teacher.fit(Digits(), digits(), digits(), ckpt_path=keeper.best_model_path)

    told, there = document(second), document(first)
    assert told["prefix"]["origin"] == there["prefix"]["default"]
    runs = [key for key in there["activity"] if key.startswith("run/")]
    informed = relations(second, "wasInformedBy", "informed", "informant")
    assert ("run/second_0", f"origin:{runs[0]}") in informed
    loaded, own = versions(second)
    assert versions(second)[loaded]["dcterms:identifier"] == keeper.best_model_path
    assert versions(second)[loaded]["provml:step"] == 16
    derived = relations(second, "wasDerivedFrom", "generatedEntity", "usedEntity")
    assert (loaded, f"origin:{theirs}") in derived
    assert (own, loaded) in derived
    assert ("context/Training", loaded) in relations(second, "used", "activity", "entity")


@pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`")
def test_a_checkpoint_of_a_run_without_a_document_is_found_in_its_journal() -> None:
    first = prov4ml.ProvMLLogger(name="first")
    _, keeper, _ = fitted(first, save_top_k=-1)
    prov4ml.end_run()
    Path(first.log_dir, "prov_version_0.json").unlink()  # as if it had never been written

    second = prov4ml.ProvMLLogger(name="second")
    trainer(second, max_epochs=5).test(
        Digits(), digits(), ckpt_path=keeper.best_model_path, verbose=False
    )
    assert any(key.startswith("origin:version/") for key in document(second)["entity"])


def test_a_checkpoint_of_nobodys_run_is_an_input() -> None:
    teacher = trainer(max_epochs=1)
    teacher.fit(Digits(), digits(), digits())
    teacher.save_checkpoint("foreign.ckpt")
    logger = prov4ml.ProvMLLogger()
    trainer(logger).validate(Digits(), digits(), ckpt_path="foreign.ckpt", verbose=False)
    ((key, found),) = versions(logger).items()
    assert found["dcterms:identifier"] == str(Path("foreign.ckpt").absolute())
    assert ("context/Validation", key) in relations(logger, "used", "activity", "entity")
    assert "origin" not in document(logger)["prefix"]


def test_a_run_json_of_another_program_above_a_checkpoint_is_no_run() -> None:
    Path("elsewhere").mkdir()
    Path("elsewhere", "run.json").write_text('{"a": 1}')
    teacher = trainer(max_epochs=1)
    teacher.fit(Digits(), digits(), digits())
    teacher.save_checkpoint("elsewhere/foreign.ckpt")
    logger = prov4ml.ProvMLLogger(strict=True)
    trainer(logger, max_epochs=2).fit(
        Digits(), digits(), digits(), ckpt_path="elsewhere/foreign.ckpt"
    )
    assert "origin" not in document(logger)["prefix"]
    assert paths(logger)[0] == str(Path("elsewhere/foreign.ckpt").absolute())


@pytest.mark.filterwarnings("ignore:Checkpoint directory")
def test_two_loggers_of_one_trainer_each_tell_the_whole_story() -> None:
    first, second = prov4ml.ProvMLLogger(), prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint()
    teacher = trainer(first, second, enable_checkpointing=True, callbacks=[keeper])
    teacher.fit(Digits(), digits(), digits())
    teacher.fit(Digits(), digits(), digits())
    for logger in (first, second):
        assert [one["provml:epoch"] for one in versions(logger).values()] == [0, 1]
    assert paths(first, is_best=True) == paths(second, is_best=True) == [keeper.best_model_path]
    assert len(teacher.callbacks) == 3  # one of each logger, and the keeper


def test_a_crate_holds_the_checkpoints_that_are_there() -> None:
    logger = prov4ml.ProvMLLogger()
    fitted(logger, save_top_k=1)
    prov4ml.end_run()
    write_crate(Path(logger.log_dir))
    crate = json.loads(Path(logger.log_dir, "ro-crate-metadata.json").read_text())
    files = {one["@id"] for one in crate["@graph"] if one["@id"].endswith(".ckpt")}
    assert len(files) == 1


def test_digests_that_take_too_long_are_left_to_the_next_writing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module_of_checkpoints, "_LONGEST_WAIT", 0.0)
    monkeypatch.setattr(module_of_checkpoints.Reader, "finished", lambda *_: [])
    logger = prov4ml.ProvMLLogger()
    fitted(logger, save_top_k=-1)
    assert not any("provml:sha256" in one for one in versions(logger).values())
    monkeypatch.undo()
    monkeypatch.chdir(Path(logger.save_dir).parent)
    prov4ml.end_run()
    assert all("provml:sha256" in one for one in versions(logger).values())
