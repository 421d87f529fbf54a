"""Checkpoints that are used again: by a test, by a later process, by another run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

import prov4ml
from tests.stories import document, fitted, paths, relations, versions
from tests.training import Digits, digits, trainer


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


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


def lies_there(logger: prov4ml.ProvMLLogger, version: dict[str, Any]) -> bool:
    return Path(logger.log_dir, version["dcterms:identifier"]).exists()


def continued(logger: prov4ml.ProvMLLogger, keeper: ModelCheckpoint) -> ModelCheckpoint:
    """Go on for two epochs, as a later process would, from the best checkpoint that is kept."""
    again = ModelCheckpoint(monitor="val_loss", save_top_k=2)
    teacher = trainer(logger, max_epochs=6, enable_checkpointing=True, callbacks=[again])
    teacher.fit(Digits(), digits(), digits(), ckpt_path=keeper.best_model_path)
    prov4ml.end_run()
    return again


@pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`")
@pytest.mark.filterwarnings("ignore:Checkpoint directory")
def test_a_later_process_deletes_and_marks_what_an_earlier_one_made() -> None:
    first = prov4ml.ProvMLLogger()
    _, keeper, _ = fitted(first, save_top_k=2)
    prov4ml.end_run()
    earlier = versions(first)
    there_before = {key for key, one in earlier.items() if lies_there(first, one)}
    later = prov4ml.ProvMLLogger(version=0)
    again = continued(later, keeper)

    found = versions(later)
    assert list(found)[: len(earlier)] == list(earlier)
    assert paths(later, is_best=True) == [again.best_model_path]
    assert again.best_model_path not in paths(first)[: len(earlier)]
    gone = dict(relations(later, "wasInvalidatedBy", "entity", "activity"))
    there = {key for key, one in found.items() if lies_there(later, one)}
    assert gone == dict.fromkeys(found.keys() - there, "context/Training")
    # Lightning deletes one of the two, and keeps the one that it went on from.
    assert len(there_before) == 2
    assert len(there_before & gone.keys()) == 1


def test_what_went_between_two_processes_was_deleted_by_no_stage() -> None:
    first = prov4ml.ProvMLLogger()
    _, keeper, _ = fitted(first, save_top_k=1)
    prov4ml.end_run()
    last = next(key for key, one in versions(first).items() if one.get("provml:is_best"))
    Path(keeper.best_model_path).unlink()

    later = prov4ml.ProvMLLogger(version=0)
    trainer(later, max_epochs=1).test(Digits(), digits(), verbose=False)
    gone = dict(relations(later, "wasInvalidatedBy", "entity", "activity"))
    assert gone[last] == "run/lightning_logs_0"


@pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`")
def test_a_later_process_that_only_tests_leaves_the_marks_as_they_are() -> None:
    first = prov4ml.ProvMLLogger()
    _, keeper, _ = fitted(first, save_top_k=1)
    prov4ml.end_run()
    earlier = versions(first)
    later = prov4ml.ProvMLLogger(version=0)
    teacher = trainer(later, max_epochs=1, enable_checkpointing=True)
    teacher.test(Digits(), digits(), ckpt_path=keeper.best_model_path, verbose=False)
    prov4ml.end_run()
    assert versions(later) == earlier
    (best,) = [key for key, one in earlier.items() if one.get("provml:is_best")]
    assert ("context/Testing", best) in relations(later, "used", "activity", "entity")


def test_another_file_at_the_path_of_an_earlier_checkpoint_is_not_it() -> None:
    first = prov4ml.ProvMLLogger()
    _, keeper, _ = fitted(first, save_top_k=1)
    prov4ml.end_run()
    earlier = versions(first)
    Path(keeper.best_model_path).write_bytes(b"of somebody else")
    later = prov4ml.ProvMLLogger(version=0)
    trainer(later).test(Digits(), digits(), verbose=False)
    Path(keeper.best_model_path).unlink()
    prov4ml.end_run()
    assert versions(later) == earlier
