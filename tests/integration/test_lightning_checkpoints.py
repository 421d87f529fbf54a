"""Checkpoints are versions of the model: made, scored, marked and deleted."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from pathlib import Path

import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

import prov4ml
from provml_lightning.exporters.crate import write_crate
from provml_lightning.loggers.lineage import digests as module_of_digests
from tests.stories import fitted, paths, relations, versions
from tests.training import Digits, digits, trainer


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


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


@pytest.mark.filterwarnings("ignore:Checkpoint directory")
def test_one_that_was_the_last_and_is_overwritten_later_is_it_no_more() -> None:
    logger = prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint(save_last=True)
    teacher = trainer(logger, max_epochs=1, enable_checkpointing=True, callbacks=[keeper])
    for epochs in (1, 2):
        teacher.fit_loop.max_epochs = epochs
        teacher.fit(Digits(), digits(), digits())
        found = versions(logger).values()
        last = [one["provml:step"] for one in found if one.get("provml:is_last")]
        assert last == [4 * epochs]


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


def test_nothing_of_ours_is_in_a_checkpoint() -> None:
    logger = prov4ml.ProvMLLogger()
    _, keeper, _ = fitted(logger)
    kept = torch.load(keeper.best_model_path, weights_only=False)
    assert not [key for key in kept["callbacks"] if "ModelCheckpoint" not in key]


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
    monkeypatch.setattr(module_of_digests, "_LONGEST_WAIT", 0.0)
    monkeypatch.setattr(module_of_digests.Reader, "finished", lambda *_: [])
    logger = prov4ml.ProvMLLogger()
    fitted(logger, save_top_k=-1)
    assert not any("provml:sha256" in one for one in versions(logger).values())
    monkeypatch.undo()
    monkeypatch.chdir(Path(logger.save_dir).parent)
    prov4ml.end_run()
    assert all("provml:sha256" in one for one in versions(logger).values())
