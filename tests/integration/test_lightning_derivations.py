"""Which version a version comes from, where it is not the one that was written before it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.plugins.io import TorchCheckpointIO
from torch.utils.data import DataLoader, TensorDataset

import prov4ml
from provml_lightning.loggers.lineage import checkpoints
from provml_lightning.loggers.lineage.places import mark_of
from provml_lightning.loggers.lineage.weights import Weights
from tests.stories import document, relations, versions
from tests.training import Digits, digits, trainer


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


def origins(logger: Any) -> dict[str, set[str]]:
    """Return the names of the files that each file comes from; of a data set its label."""
    names = {key: Path(one["dcterms:identifier"]).name for key, one in versions(logger).items()}
    found: dict[str, set[str]] = {name: set() for name in names.values()}
    for made, source in relations(logger, "wasDerivedFrom", "generatedEntity", "usedEntity"):
        if made in names:
            found[names[made]].add(names.get(source, "data"))
    return found


class Alike(Digits):
    """Is equal to every other one."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike)

    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize("kind", [Digits, Alike])
def test_modules_that_are_trained_in_turn_have_a_line_each(kind: type[Digits]) -> None:
    logger = prov4ml.ProvMLLogger()
    one, other = trainer(logger, max_epochs=1), trainer(logger, max_epochs=1)
    model = kind()
    one.fit(model, digits(), digits())
    one.save_checkpoint("one.ckpt")
    other.fit(kind(), digits(), digits())
    other.save_checkpoint("other.ckpt")
    one.save_checkpoint("one again.ckpt")
    other.save_checkpoint("other again.ckpt", weights_only=True)
    one.fit_loop.max_epochs = 2
    one.fit(model, digits(), digits())
    one.save_checkpoint("one at last.ckpt")
    prov4ml.end_run()
    assert origins(logger) == {
        "one.ckpt": {"data"},
        "other.ckpt": {"data"},
        "one again.ckpt": {"one.ckpt"},
        "other again.ckpt": {"other.ckpt"},
        "one at last.ckpt": {"one again.ckpt"},
    }


def test_who_saves_what_a_test_has_loaded_has_that_one_again() -> None:
    logger = prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint(dirpath="kept", filename="{epoch}", save_top_k=-1)
    teacher = trainer(logger, max_epochs=3, enable_checkpointing=True, callbacks=[keeper])
    model = Digits()
    teacher.fit(model, digits(), digits())
    teacher.test(model, digits(), ckpt_path="kept/epoch=0.ckpt", verbose=False, weights_only=False)
    teacher.save_checkpoint("tested.ckpt")
    teacher.save_checkpoint("and again.ckpt")
    prov4ml.end_run()
    assert origins(logger) == {
        "epoch=0.ckpt": {"data"},
        "epoch=1.ckpt": {"epoch=0.ckpt"},
        "epoch=2.ckpt": {"epoch=1.ckpt"},
        "tested.ckpt": {"epoch=0.ckpt"},
        "and again.ckpt": {"tested.ckpt"},
    }
    loaded = torch.load("kept/epoch=0.ckpt", weights_only=False)["state_dict"]
    for name, value in torch.load("tested.ckpt", weights_only=False)["state_dict"].items():
        assert torch.equal(value, loaded[name])


def test_who_goes_on_from_a_file_has_its_line_beside_the_others() -> None:
    logger = prov4ml.ProvMLLogger()
    one = trainer(logger, max_epochs=1)
    one.fit(Digits(), digits(), digits())
    one.save_checkpoint("one.ckpt")
    one.save_checkpoint("later.ckpt")
    other = trainer(logger, max_epochs=2)
    other.fit(Digits(), digits(), digits(), ckpt_path="one.ckpt", weights_only=False)
    one.save_checkpoint("latest.ckpt")
    other.save_checkpoint("other.ckpt")
    prov4ml.end_run()
    assert origins(logger) == {
        "one.ckpt": {"data"},
        "later.ckpt": {"one.ckpt"},
        "latest.ckpt": {"later.ckpt"},
        "other.ckpt": {"one.ckpt"},
    }


def test_a_module_of_which_nothing_is_known_comes_from_nothing() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1)
    teacher.fit(Digits(), digits(), digits())
    teacher.save_checkpoint("trained.ckpt")
    teacher.validate(Digits(), digits(), verbose=False)
    teacher.save_checkpoint("random.ckpt")
    teacher.validate(Digits.load_from_checkpoint("trained.ckpt"), digits(), verbose=False)
    teacher.save_checkpoint("loaded.ckpt")
    prov4ml.end_run()
    assert origins(logger) == {"trained.ckpt": {"data"}, "random.ckpt": set(), "loaded.ckpt": set()}


class SavesAtFirst(Callback):
    """Saves in its stages before the first step, and may stop there."""

    def __init__(self, *, stops: bool = False) -> None:
        self.stops = stops

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        del pl_module, stage
        trainer.save_checkpoint("set up.ckpt")

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        del pl_module
        trainer.save_checkpoint("begun.ckpt", weights_only=True)
        trainer.save_checkpoint("begun again.ckpt")

    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        del trainer, pl_module
        if self.stops:
            raise ValueError("the user's own")


@pytest.mark.parametrize("stops", [False, True])
def test_what_is_saved_before_the_first_step_comes_from_what_was_loaded(stops: bool) -> None:
    logger, model = prov4ml.ProvMLLogger(), Digits()
    for number in (1, 2):
        teacher = trainer(logger, max_epochs=number)
        teacher.fit(model, digits(), digits())
        teacher.save_checkpoint(f"{number}.ckpt")
    callbacks = [SavesAtFirst(stops=stops)]
    teacher = trainer(logger, max_epochs=3, callbacks=callbacks, num_sanity_val_steps=1)
    with pytest.raises(ValueError, match="own") if stops else nullcontext():
        teacher.fit(Digits(), digits(), digits(), ckpt_path="1.ckpt", weights_only=False)
    teacher.save_checkpoint("at last.ckpt")
    prov4ml.end_run()
    found = origins(logger)
    assert found["set up.ckpt"] == set()
    assert found["begun.ckpt"] == {"1.ckpt"}
    assert found["begun again.ckpt"] == {"begun.ckpt"}
    assert found["at last.ckpt"] == ({"begun again.ckpt"} if stops else {"1.ckpt"})


def test_weights_that_saw_no_data_come_from_none_and_the_trained_ones_do() -> None:
    logger = prov4ml.ProvMLLogger()
    for number in (1, 2):
        teacher = trainer(logger, max_epochs=1, callbacks=[SavesAtFirst()])
        teacher.fit(Digits(), digits(), digits())
        teacher.save_checkpoint(f"{number}.ckpt")
    prov4ml.end_run()
    found = relations(logger, "wasDerivedFrom", "generatedEntity", "usedEntity")
    fed = [made for made, source in found if "dataset" in source]
    names = {key: Path(one["dcterms:identifier"]).name for key, one in versions(logger).items()}
    assert sorted(names[made] for made in fed) == ["1.ckpt", "2.ckpt"]


def test_each_fold_comes_from_its_own_data_alone() -> None:
    logger = prov4ml.ProvMLLogger()
    images, labels = digits().dataset.tensors  # type: ignore[attr-defined]
    folds = [TensorDataset(images[part], labels[part]) for part in (slice(8), slice(8, 32))]
    for number, fold in enumerate(folds):
        teacher = trainer(logger, max_epochs=1)
        teacher.fit(Digits(), DataLoader(fold, batch_size=4), DataLoader(fold))
        teacher.save_checkpoint(f"{number}.ckpt")
    prov4ml.end_run()
    entities, made = document(logger)["entity"], list(versions(logger))
    found = relations(logger, "wasDerivedFrom", "generatedEntity", "usedEntity")
    fed = [
        (made.index(version), entities[source]["provml:total_samples"])
        for version, source in found
        if version in made
    ]
    assert sorted(fed) == [(0, 8), (1, 24)]


def test_saves_that_nobody_told_of_are_passed_over_however_many_they_were() -> None:
    weights, model = Weights(), Digits()
    weights.begin(ref(model))
    weights.feed(ref(model), [7])
    weights.save(ref(model)).tell(8)
    for _ in range(5000):
        weights.save(ref(model))
    assert weights.save(ref(model)).sources() == [8]


def test_of_several_modules_that_others_train_nobody_here_knows_whose_the_newest_is() -> None:
    weights, one, other = Weights(), Digits(), Digits()
    weights.lend(ref(one))
    assert weights.save(ref(one)).sources() is None
    weights.lend(ref(one))
    weights.lend(ref(other))
    assert weights.save(ref(one)).sources() == []
    assert weights.save(ref(other)).sources() == []


class DryRun(TorchCheckpointIO):
    def save_checkpoint(self, *_: Any, **__: Any) -> None:
        """Write nothing."""


def test_files_that_never_come_are_not_looked_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = []
    monkeypatch.setattr(checkpoints, "mark_of", lambda place: looks.append(mark_of(place)))
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1, plugins=[DryRun()])
    teacher.fit(Digits(), digits(), digits())
    for number in range(40):
        teacher.save_checkpoint(f"{number}.ckpt")
    assert 40 < len(looks) < 40 * 12
    prov4ml.end_run()
    assert versions(logger) == {}
