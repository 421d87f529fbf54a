"""Checkpoints that are used again: by a test, by a later process, by another run."""

from __future__ import annotations

import gc
import hashlib
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

import prov4ml
from provml_lightning.errors import RecordDroppedWarning
from provml_lightning.exporters.crate import write_crate
from provml_lightning.loggers.lineage.reading import Reader
from provml_lightning.query.overview import read_overview
from tests.stories import document, fitted, paths, relations, versions
from tests.training import Digits, digits, trainer

pytestmark = pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`")


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


def derived(logger: prov4ml.ProvMLLogger) -> dict[str, list[str]]:
    """Return what each version comes from."""
    found: dict[str, list[str]] = {key: [] for key in versions(logger)}
    for made, source in relations(logger, "wasDerivedFrom", "generatedEntity", "usedEntity"):
        found.get(made, []).append(source)
    return found


DATA = "dataset/Training/train/lightning"


@pytest.mark.filterwarnings("ignore:Checkpoint directory")
def test_another_module_comes_from_the_data_and_not_from_the_one_before() -> None:
    logger = prov4ml.ProvMLLogger()
    first, second = Digits(), Digits()
    for module, epochs in ((first, 1), (first, 2), (second, 1)):
        teacher = trainer(logger, max_epochs=epochs, enable_checkpointing=True)
        teacher.fit(module, digits(), digits())
    came = derived(logger)
    ids = list(came)
    assert came == {
        ids[0]: [DATA], ids[1]: [ids[0]], ids[2]: [ids[1]], ids[3]: [DATA],
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:Checkpoint directory")
def test_a_later_process_that_begins_anew_comes_from_the_data() -> None:
    for _ in range(2):
        logger = prov4ml.ProvMLLogger(version=0)
        trainer(logger, max_epochs=1, enable_checkpointing=True).fit(Digits(), digits(), digits())
        prov4ml.end_run()
    assert list(derived(logger).values()) == [[DATA], [DATA]]


def test_a_later_process_tells_its_command_and_not_the_same_model_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for script in ("train.py", "test.py", "test.py"):
        monkeypatch.setattr(sys, "orig_argv", ["python", script])
        logger = prov4ml.ProvMLLogger(version=0)
        trainer(logger, max_epochs=1).test(Digits(), digits(), verbose=False)
        prov4ml.end_run()
    told = document(logger)
    assert told["activity"]["run/lightning_logs_0"]["provml:command_line"] == [
        "python train.py", "python test.py",
    ]  # fmt: skip
    assert read_overview(logger.log_dir).command == "python train.py, then python test.py"
    models = [key for key in told["entity"] if key.startswith("model/")]
    assert models == ["model/~~/Digits/lightning"]


def test_another_model_of_a_later_process_is_a_revision() -> None:
    for layers in (1, 2):
        module = Digits()
        module.more = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(layers)))
        logger = prov4ml.ProvMLLogger(version=0)
        trainer(logger, max_epochs=1).test(module, digits(), verbose=False)
        prov4ml.end_run()
    told = document(logger)["entity"].items()
    models = [one for key, one in told if key.startswith("model/")]
    assert [one["provml:total_params"] for one in models] == [650 + 6, 650 + 12]


def test_a_checkpoint_that_was_tested_is_a_result_of_the_crate() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher, keeper, _ = fitted(logger, save_top_k=1)
    teacher.test(Digits(), digits(), ckpt_path=keeper.best_model_path, verbose=False)
    prov4ml.end_run()
    write_crate(Path(logger.log_dir))
    graph = json.loads(Path(logger.log_dir, "ro-crate-metadata.json").read_text())["@graph"]
    (action,) = [one for one in graph if one["@type"] == "CreateAction"]
    best = {"@id": quote(Path(keeper.best_model_path).relative_to(logger.log_dir).as_posix())}
    assert best in action["result"]
    assert {"@id": "artifacts/requirements.txt"} not in action["result"]


def test_a_module_that_is_only_tested_does_not_speak_for_the_one_that_was_trained() -> None:
    first = prov4ml.ProvMLLogger()
    trainer(first, max_epochs=1).fit(Digits(learning_rate=0.02), digits(), digits())
    prov4ml.end_run()
    for _ in range(2):
        later = prov4ml.ProvMLLogger(version=0)
        trainer(later).test(Digits(learning_rate=0.5), digits(), verbose=False)
        prov4ml.end_run()
    run = later.log_dir
    assert prov4ml.get_parameter(run, "param/~~/learning_rate", "value") == 0.02
    assert prov4ml.get_parameter(run, "param/Testing/learning_rate", "value") == 0.5


def test_a_run_that_only_tests_has_the_hyperparameters_of_the_module() -> None:
    logger = prov4ml.ProvMLLogger()
    trainer(logger).test(Digits(learning_rate=0.5), digits(), verbose=False)
    prov4ml.end_run()
    assert prov4ml.get_parameter(logger.log_dir, "learning_rate", "value") == 0.5


def marked(logger: prov4ml.ProvMLLogger) -> tuple[list[str], list[str]]:
    return paths(logger, is_best=True), paths(logger, is_last=True)


def test_what_is_best_stays_so_though_the_trainer_is_gone_or_another_one_tests() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher, keeper, diary = fitted(logger, save_top_k=2)
    del teacher, diary
    best, before = keeper.best_model_path, marked(logger)
    del keeper
    gc.collect()
    for checkpointing in (True, False):
        tester = trainer(logger, enable_checkpointing=checkpointing)
        tester.test(Digits(), digits(), ckpt_path=best, verbose=False)
    prov4ml.end_run()
    assert marked(logger) == before == ([best], [best])


def test_a_later_process_that_tests_a_foreign_checkpoint_leaves_the_marks() -> None:
    first = prov4ml.ProvMLLogger()
    fitted(first, save_top_k=1)
    prov4ml.end_run()
    before = marked(first)
    teacher = trainer(max_epochs=1)
    teacher.fit(Digits(), digits(), digits())
    teacher.save_checkpoint("foreign.ckpt")
    later = prov4ml.ProvMLLogger(version=0)
    trainer(later).test(Digits(), digits(), ckpt_path="foreign.ckpt", verbose=False)
    prov4ml.end_run()
    assert marked(later) == before


def rewritten(path: str) -> str:
    """Leave out what a test does not need, as people do; return the new digest."""
    kept = torch.load(path, weights_only=False)
    del kept["optimizer_states"]
    torch.save(kept, path)
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@pytest.mark.parametrize("is_later", [False, True])
def test_a_checkpoint_that_was_rewritten_is_another_one_when_it_is_used(*, is_later: bool) -> None:
    logger = prov4ml.ProvMLLogger()
    _, keeper, _ = fitted(logger, save_top_k=1)
    prov4ml.end_run()
    digest = rewritten(keeper.best_model_path)
    if is_later:
        logger = prov4ml.ProvMLLogger(version=0)
    trainer(logger).test(Digits(), digits(), ckpt_path=keeper.best_model_path, verbose=False)
    prov4ml.end_run()
    used = dict(relations(logger, "used", "entity", "activity"))
    (tested,) = [
        key
        for key, activity in used.items()
        if activity == "context/Testing" and key in versions(logger)
    ]
    assert versions(logger)[tested]["provml:sha256"] == digest


def test_a_save_that_a_killed_process_did_not_tell_lends_its_bytes_to_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Reader, "read", lambda *_: None)  # as if it had died before it read them
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1)
    teacher.fit(Digits(), digits(), digits())
    teacher.save_checkpoint("mine.ckpt")
    with pytest.warns(RecordDroppedWarning, match="no digest"):
        prov4ml.end_run()
    monkeypatch.undo()
    monkeypatch.chdir(Path(logger.save_dir).parent)
    (told,) = versions(logger).values()
    again = trainer(max_epochs=2)
    again.fit(Digits(), digits(), digits(), ckpt_path="mine.ckpt")
    again.save_checkpoint("mine.ckpt")  # as large, and nobody told of it

    later = prov4ml.ProvMLLogger(version=0)
    trainer(later).test(Digits(), digits(), ckpt_path="mine.ckpt", verbose=False)
    prov4ml.end_run()
    first, second = versions(later).values()
    assert "provml:sha256" not in first
    assert first["provml:step"] == told["provml:step"] == 4
    assert second["provml:sha256"] == hashlib.sha256(Path("mine.ckpt").read_bytes()).hexdigest()


def test_what_lies_on_a_disk_that_is_not_here_was_not_deleted(tmp_path: Path) -> None:
    first = prov4ml.ProvMLLogger()
    fitted(first, dirpath=tmp_path / "mnt" / "kept", save_top_k=1)
    prov4ml.end_run()
    before = relations(first, "wasInvalidatedBy", "entity")
    (tmp_path / "mnt").rename(tmp_path / "away")
    (tmp_path / "mnt").mkdir()
    for _ in range(2):
        later = prov4ml.ProvMLLogger(version=0)
        trainer(later).test(Digits(), digits(), verbose=False)
        prov4ml.end_run()
    assert relations(later, "wasInvalidatedBy", "entity") == before
    assert len(paths(later, is_best=True)) == 1
