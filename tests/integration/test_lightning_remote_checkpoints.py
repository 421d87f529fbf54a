"""Checkpoints in a store that is no folder of this machine, through fsspec as Lightning has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import fsspec
import pytest
import torch
from fsspec.implementations.memory import MemoryFileSystem
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.plugins.io import TorchCheckpointIO

import prov4ml
from provml_lightning.errors import RecordDroppedWarning
from provml_lightning.query.overview import read_overview
from tests.stories import Closed, document, fitted, relations, versions
from tests.training import Digits, digits, trainer

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`")


class Store(MemoryFileSystem):
    """A store that counts the questions, and answers none while it is out of reach."""

    protocol = "store"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    asked: ClassVar[list[str]] = []
    is_out_of_reach: ClassVar[bool] = False

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.replace("store://", "memory://"))

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        Store.asked.append(path)
        if Store.is_out_of_reach:
            raise ConnectionError("https://user:hunter2@store is out of reach")
        return super().info(path, **options)


fsspec.register_implementation("store", Store)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)
    yield
    Store.store.clear()
    Store.pseudo_dirs[:] = [""]
    Store.asked.clear()
    Store.is_out_of_reach = False


def test_a_remote_checkpoint_is_a_version_with_its_url_and_the_size_that_the_store_says() -> None:
    logger = prov4ml.ProvMLLogger()
    _, keeper, diary = fitted(logger, dirpath="store://bucket/run", save_top_k=-1)

    found = list(versions(logger).values())
    assert [one["dcterms:identifier"] for one in found] == list(keeper.best_k_models)
    for one, saved in zip(found, diary.saved, strict=True):
        assert (one["provml:epoch"], one["provml:step"]) == (saved["epoch"], saved["step"])
        assert one["provml:score"] == saved["score"]
        with fsspec.open(one["dcterms:identifier"]) as file:
            assert one["yprov:file_size"] == len(file.read())
        assert "provml:sha256" not in one  # nothing is fetched for a digest
    best = [one["dcterms:identifier"] for one in found if one.get("provml:is_best")]
    assert best == [keeper.best_model_path]
    assert not list(Path(logger.log_dir).rglob("*.ckpt"))


def test_a_remote_checkpoint_that_is_deleted_is_no_more() -> None:
    logger = prov4ml.ProvMLLogger()
    _, keeper, _ = fitted(logger, dirpath="store://bucket/run", save_top_k=1)
    found = versions(logger)
    there = {key for key, one in found.items() if Store().exists(one["dcterms:identifier"])}
    assert {found[key]["dcterms:identifier"] for key in there} == {keeper.best_model_path}
    gone = relations(logger, "wasInvalidatedBy", "entity", "activity")
    assert len(found) == 4
    assert set(gone) == {(key, "context/Training") for key in found.keys() - there}


def test_remote_checkpoints_of_weights_alone_and_by_hand_are_versions_too() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher, keeper, _ = fitted(
        logger, dirpath="store://bucket/run", save_top_k=-1, save_weights_only=True
    )
    teacher.save_checkpoint("store://bucket/by hand.ckpt")
    prov4ml.end_run()
    assert [one["dcterms:identifier"] for one in versions(logger).values()] == [
        *keeper.best_k_models, "store://bucket/by hand.ckpt",
    ]  # fmt: skip


def test_a_test_and_a_training_of_a_remote_checkpoint_use_it() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher, keeper, _ = fitted(logger, dirpath="store://bucket/run", save_top_k=-1)
    teacher.test(Digits(), digits(), ckpt_path=keeper.best_model_path, verbose=False)
    (best,) = [key for key, one in versions(logger).items() if one.get("provml:is_best")]
    assert ("context/Testing", best) in relations(logger, "used", "activity", "entity")

    other = prov4ml.ProvMLLogger(name="other")
    trainer(other, max_epochs=5).fit(Digits(), digits(), digits(), ckpt_path=keeper.best_model_path)
    ((loaded, told),) = versions(other).items()
    assert told["dcterms:identifier"] == keeper.best_model_path
    assert ("context/Training", loaded) in relations(other, "used", "activity", "entity")


class Unplugs(TorchCheckpointIO):
    """Loses the store as soon as it has saved there."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, **options: Any) -> None:
        super().save_checkpoint(checkpoint, path, **options)
        Store.is_out_of_reach = True


def test_a_store_that_is_lost_costs_neither_the_training_nor_a_version() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=2, plugins=[Unplugs()])
    teacher.fit(Digits(), digits(), digits())
    teacher.save_checkpoint("store://me:hunter2@bucket/last.ckpt")
    prov4ml.end_run()

    (told,) = versions(logger).values()
    assert told["provml:step"] == teacher.global_step
    assert told["provml:location"] == "store://***@bucket/last.ckpt"
    assert "yprov:file_size" not in told
    assert "hunter2" not in str(document(logger))
    assert not relations(logger, "wasInvalidatedBy", "entity")


def test_a_store_is_not_asked_at_every_epoch_for_what_lies_there() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1)
    teacher.fit(Digits(), digits(), digits())
    teacher.save_checkpoint("store://bucket/by hand.ckpt")
    teacher.validate(Digits(), digits(), verbose=False)
    Store.asked.clear()
    for _ in range(3):
        teacher.validate(Digits(), digits(), verbose=False)
    assert len(Store.asked) <= 3  # once each time that the documents are written


def test_a_url_of_this_machine_is_a_path(tmp_path: Path) -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1)
    teacher.fit(Digits(), digits(), digits())
    teacher.save_checkpoint(f"file://{tmp_path}/here.ckpt")
    prov4ml.end_run()
    (told,) = versions(logger).values()
    assert told["dcterms:identifier"] == str(tmp_path / "here.ckpt")
    assert told["yprov:file_size"] == (tmp_path / "here.ckpt").stat().st_size
    assert len(told["provml:sha256"]) == 64


class Folders(TorchCheckpointIO):
    """Writes folders, of which a store says neither a time nor a tag."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, **options: Any) -> None:
        super().save_checkpoint(checkpoint, f"{path}/a.pt", **options)
        super().save_checkpoint({}, f"{path}/b.pt", **options)


def test_a_remote_folder_that_is_overwritten_is_a_version_each_time() -> None:
    logger = prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint(dirpath="store://bucket", monitor="val_loss", save_last=True)
    teacher = trainer(
        logger, max_epochs=3, enable_checkpointing=True, callbacks=[keeper], plugins=[Folders()]
    )
    teacher.fit(Digits(), digits(), digits())
    told = versions(logger).values()
    found = [one for one in told if one["dcterms:identifier"] == keeper.last_model_path]
    assert [one["provml:step"] for one in found] == [4, 8, 12]
    assert {one["provml:files"] for one in found} == {2}
    assert [one.get("provml:is_last", False) for one in found] == [False, False, True]


class Refuses(Callback):
    """Loses the store before it saves there."""

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        del module
        Store.is_out_of_reach = True
        trainer.save_checkpoint("store://bucket/mine.ckpt")


@pytest.fixture
def _full_store(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise ConnectionError("503")

    monkeypatch.setattr(Store, "_open", refuse)


@pytest.mark.usefixtures("_full_store")
def test_a_save_that_failed_in_a_silent_store_is_no_version() -> None:
    logger = prov4ml.ProvMLLogger()
    with pytest.raises(ConnectionError, match="503"):
        trainer(logger, callbacks=[Refuses()]).fit(Digits(), digits(), digits())
    assert versions(logger) == {}


@pytest.mark.usefixtures("_full_store")
@pytest.mark.filterwarnings("ignore::provml_lightning.errors.RecordDroppedWarning")
def test_where_nobody_heard_how_it_ended_it_is_a_note() -> None:
    logger = prov4ml.ProvMLLogger()
    alone = Closed(device=torch.device("cpu"))
    with pytest.raises(ConnectionError, match="503"):
        trainer(logger, callbacks=[Refuses()], strategy=alone, accelerator="auto").fit(
            Digits(), digits(), digits()
        )
    assert versions(logger) == {}
    notes = read_overview(logger.log_dir).notes
    assert any("mine.ckpt" in note and "whether it was written" in note for note in notes)


def test_urls_that_differ_in_their_secrets_alone_are_told_apart() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1)
    teacher.fit(Digits(), digits(), digits())
    for secret in ("one", "two", "three"):
        teacher.save_checkpoint(f"store://me:{secret}@host/x.ckpt")
    prov4ml.end_run()
    shown = "store://***@host/x.ckpt"
    found = [one["dcterms:identifier"] for one in versions(logger).values()]
    assert found == [shown, f"{shown}~2", f"{shown}~3"]
    assert not relations(logger, "wasInvalidatedBy", "entity")


class Pending(Callback):
    """Saves at each epoch to a store that has fallen silent."""

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        del module
        Store.is_out_of_reach = True
        trainer.save_checkpoint(f"store://bucket/{trainer.current_epoch}.ckpt")


@pytest.mark.filterwarnings("ignore::provml_lightning.errors.RecordDroppedWarning")
def test_a_silent_store_is_asked_a_number_of_times_that_grows_with_the_saves_alone() -> None:
    asked = {}
    for epochs in (4, 8):
        Store.asked.clear()
        trainer(prov4ml.ProvMLLogger(), max_epochs=epochs, callbacks=[Pending()]).fit(
            Digits(), digits(), digits()
        )
        asked[epochs] = len(Store.asked)
    assert asked[8] <= 2 * asked[4] + 2


def test_a_later_test_asks_a_store_nothing_of_what_lies_there() -> None:
    logger = prov4ml.ProvMLLogger()
    fitted(logger, dirpath="store://bucket/run", save_top_k=-1)
    Store.asked.clear()
    trainer(logger).test(Digits(), digits(), verbose=False)
    assert Store.asked == []


class Timeless(Store):
    """A store that says no times."""

    protocol = "timeless"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.replace("timeless://", "memory://"))

    def modified(self, path: str) -> Any:
        raise NotImplementedError


fsspec.register_implementation("timeless", Timeless)


@pytest.mark.filterwarnings("ignore:Checkpoint directory")
def test_weights_of_an_earlier_process_in_a_store_without_times_are_not_told_again() -> None:
    kept: list[str] = []
    for epochs in (2, 4):
        logger = prov4ml.ProvMLLogger(version=0)
        keeper = ModelCheckpoint(
            dirpath="timeless://bucket", filename="{epoch}", save_top_k=-1, save_weights_only=True
        )
        full = ModelCheckpoint(dirpath="full", filename="x", every_n_epochs=2)
        teacher = trainer(
            logger, max_epochs=epochs, enable_checkpointing=True, callbacks=[keeper, full]
        )
        teacher.fit(Digits(), digits(), digits(), ckpt_path=kept[-1] if kept else None)
        prov4ml.end_run()
        kept.append(full.best_model_path)
    remote = [
        (one["dcterms:identifier"], one["provml:step"])
        for one in versions(logger).values()
        if "timeless" in one["dcterms:identifier"]
    ]
    assert remote == [
        (f"timeless://bucket/epoch={epoch}.ckpt", 4 * epoch + 4) for epoch in range(4)
    ]


def test_a_save_that_nobody_saw_before_the_next_one_is_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1)
    teacher.fit(Digits(), digits(), digits())
    with monkeypatch.context() as patch:
        patch.setattr(Store, "is_out_of_reach", True)
        teacher.save_checkpoint("store://bucket/x.ckpt")
        with pytest.warns(RecordDroppedWarning, match="whether it was written"):
            teacher.validate(Digits(), digits(), verbose=False)
        teacher.save_checkpoint("store://bucket/x.ckpt")
        teacher.save_checkpoint("store://bucket/x.ckpt")
    prov4ml.end_run()
    assert len(versions(logger)) == 2
    (note,) = read_overview(logger.log_dir).notes
    assert "store://bucket/x.ckpt: nobody could see" in note
    assert "(2 times)" in note
