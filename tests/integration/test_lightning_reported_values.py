"""All that is told of a Trainer without being asked, against what it reports itself."""

from __future__ import annotations

import os
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from lightning.pytorch import seed_everything
from lightning.pytorch.callbacks import (
    Callback,
    EarlyStopping,
    GradientAccumulationScheduler,
    LearningRateMonitor,
    ModelCheckpoint,
    ModelSummary,
    Timer,
)
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    Subset,
    WeightedRandomSampler,
)

import prov4ml
from tests.reported import (
    Reader,
    class_of,
    of_callbacks,
    of_checkpoints,
    of_loaders,
    of_model,
    of_optimizers,
    of_trainer,
    parameters,
    told,
)
from tests.training import Digits, digits, trainer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lightning.pytorch import Trainer

LOADERS = {
    "Sanity checking": ["val"],
    "Training": ["train/images", "train/more"],
    "Validation": ["val", "val/0", "val/1"],
    "Testing": ["test/easy", "test/hard"],
    "Prediction": ["predict/0", "predict/1", "predict/2"],
}
# Epochs, and the step at the end of the first and of the last: after the training, its steps.
EPOCHS = {"Training": (2, 3, 7), "Validation": (3, 3, 8)}
EPOCHS |= {"Testing": (1, 8, 8), "Prediction": (1, 8, 8)}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("PL_GLOBAL_SEED", "PL_SEED_WORKERS"):
        monkeypatch.setenv(variable, "0")  # which seed_everything sets: so that it is undone
        monkeypatch.delenv(variable)


class Rich(Digits):
    """Has parameters of two types and some that do not train, two groups and two schedulers."""

    def __init__(self) -> None:
        super().__init__()
        self.extra = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).double()
        self.extra.requires_grad_(requires_grad=False)

    def training_step(self, batch: Any) -> torch.Tensor:
        return super().training_step(batch["images"]) + self.loss(batch["more"])

    def validation_step(self, batch: Any, _: int, dataloader_idx: int = 0) -> None:
        self.log("val_loss", self.loss(batch), add_dataloader_idx=dataloader_idx > 0)

    def test_step(self, batch: Any, *_: int) -> None:
        self.loss(batch)

    def predict_step(self, batch: Any, *_: int) -> Any:
        return batch

    def configure_optimizers(self) -> Any:
        groups = [
            {"params": [self.layer.weight], "lr": 0.25},
            {"params": [self.layer.bias], "lr": 0.125, "weight_decay": 0.5},
        ]
        optimizer = torch.optim.AdamW(groups, betas=(0.5, 0.75), amsgrad=True)
        plateau = lr_scheduler.ReduceLROnPlateau(optimizer, "max", 0.75, 7, cooldown=2)
        return [optimizer], [
            {
                "scheduler": lr_scheduler.StepLR(optimizer, 3, gamma=0.5),
                "interval": "step", "frequency": 2, "name": "by_step",
            },
            {"scheduler": plateau, "monitor": "val_loss"},
        ]  # fmt: skip


class Stream(IterableDataset[torch.Tensor]):
    """Does not say how long it is."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(torch.zeros(5, 64))


def work(teacher: Trainer, model: Rich) -> None:
    """Have a Trainer do all it can, with other data each time."""
    images = digits().dataset
    some = Subset(images, range(20))
    weighted = WeightedRandomSampler([1.0] * 32, 24)
    learnt = {
        "images": DataLoader(images, batch_size=5, shuffle=True, drop_last=True),
        "more": DataLoader(images, batch_size=3, sampler=weighted),
    }
    teacher.fit(model, learnt, DataLoader(images, batch_size=16))
    checked = [DataLoader(some, batch_size=12, drop_last=True), DataLoader(images, batch_size=11)]
    teacher.validate(model, checked, verbose=False)
    easy, hard = DataLoader(some, batch_size=3), DataLoader(images, batch_size=7, drop_last=True)
    teacher.test(model, {"easy": easy, "hard": hard}, verbose=False)
    mixed = BatchSampler(RandomSampler(images), 6, drop_last=True)
    asked = [DataLoader(images, batch_size=9), DataLoader(images, batch_sampler=mixed)]
    teacher.predict(model, [*asked, DataLoader(Stream(), batch_size=4)])


@pytest.mark.filterwarnings("ignore:Your `predict_dataloader`'s sampler has shuffling enabled")
def test_all_that_is_told_of_a_trainer_is_what_it_reports() -> None:
    seed_everything(1234, workers=True, verbose=False)
    logger, reader, model = prov4ml.ProvMLLogger(), Reader(), Rich()
    keepers = [
        ModelCheckpoint(filename="best-{epoch}", monitor="val_loss", save_top_k=-1),
        ModelCheckpoint(filename="weights-{epoch}", save_top_k=-1, save_weights_only=True),
    ]
    callbacks = {
        "Reader": reader,
        "EarlyStopping": EarlyStopping("val_loss", 0.25, 9, mode="max", stopping_threshold=1e9),
        "LearningRateMonitor": LearningRateMonitor("step", log_momentum=True),
        "Timer": Timer("00:01:00:00", interval="epoch"),
        "ModelSummary": ModelSummary(max_depth=0),
        "ModelCheckpoint": keepers[0],
        "ModelCheckpoint.2": keepers[1],
    }
    teacher = trainer(
        logger, callbacks=list(callbacks.values()), accumulate_grad_batches=2,
        enable_checkpointing=True, gradient_clip_val=0.5, gradient_clip_algorithm="value",
        max_epochs=2, min_epochs=1, max_steps=100, min_steps=2, num_sanity_val_steps=1,
        limit_train_batches=50, limit_val_batches=51, limit_test_batches=52,
        limit_predict_batches=53,
    )  # fmt: skip
    work(teacher, model)

    assert teacher.global_step == 8  # after half of the batches of the longer loader, twice
    others = [one for one in teacher.callbacks if one is not logger.lineage_callback]
    assert set(others) == set(callbacks.values())
    seeds = {"torch": reader.seed, "global": int(os.environ["PL_GLOBAL_SEED"]), "workers": 1}
    wanted = {
        **of_trainer(teacher),
        **parameters({f"seed/{name}": value for name, value in seeds.items()}),
        **of_callbacks(callbacks),
        **of_optimizers(teacher, reader, "AdamW"),
        **of_loaders(reader, LOADERS),
        **of_model(model, logger),
        **of_checkpoints(logger, "Rich", *keepers),
    }
    found = told(logger)
    times = {key: found.pop(key) for key in list(found) if key[0] == "provml:Metric"}
    assert found.keys() == wanted.keys()
    for key, facts in wanted.items():
        assert found[key] == facts, key
    # How long they took is compared with clocks elsewhere.
    assert {(name, facts["unit"]) for (*_, name), facts in times.items()} == {
        ("epoch_time", (str, "s"))
    }
    assert {
        stage: tuple(facts[name][1] for name in ("rows", "first_step", "last_step"))
        for (_, stage, _), facts in times.items()
    } == EPOCHS


class ByHand(Digits):
    """Has two optimizers of one class, each with a scheduler, and a rate in a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch: Any) -> None:
        for optimizer, scheduler in zip(self.optimizers(), self.lr_schedulers(), strict=True):
            optimizer.zero_grad()
            self.manual_backward(self.loss(batch))
            optimizer.step()
            scheduler.step()

    def configure_optimizers(self) -> Any:
        weight, bias = self.layer.weight, self.layer.bias
        groups = [{"params": [weight], "momentum": 0.5}, {"params": [bias], "nesterov": True}]
        first = torch.optim.SGD(groups, lr=0.25, momentum=0.75)
        second = torch.optim.SGD([weight, bias], lr=torch.tensor(0.125), maximize=True)
        return [first, second], [
            lr_scheduler.MultiStepLR(first, milestones=[1, 3, 3], gamma=0.5),
            lr_scheduler.CosineAnnealingLR(second, T_max=9, eta_min=0.125),
        ]


def test_several_optimizers_are_told_with_all_their_groups_and_schedulers() -> None:
    logger, reader = prov4ml.ProvMLLogger(lineage=["optimizers"]), Reader()
    teacher = trainer(logger, callbacks=[reader])
    teacher.fit(ByHand(), digits(), digits())
    assert [len(groups) for groups in reader.groups] == [2, 1]
    assert told(logger) == of_optimizers(teacher, reader, "SGD", "SGD.2")


class WarmsUp(Digits):
    """Has a scheduler that is made of two, and parameters that have names."""

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.named_parameters(), lr=0.5)
        warm = lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3)
        cool = lr_scheduler.CosineAnnealingLR(optimizer, T_max=9, eta_min=0.125)
        return [optimizer], [lr_scheduler.SequentialLR(optimizer, [warm, cool], milestones=[3])]


def test_a_scheduler_that_is_made_of_others_is_told_with_theirs() -> None:
    logger = prov4ml.ProvMLLogger(lineage=["optimizers"])
    trainer(logger).fit(WarmsUp(), digits(), digits())
    schedulers = {
        key[2].removeprefix("scheduler/SequentialLR"): facts["value"][1]
        for key, facts in told(logger).items()
        if key[2].startswith("scheduler/")
    }
    assert schedulers == {
        "": "torch.optim.lr_scheduler.SequentialLR",
        "/interval": "epoch",
        "/frequency": 1,
        "/milestones": "[3]",
        "/0": "torch.optim.lr_scheduler.LinearLR",
        "/0/start_factor": 0.25,
        "/0/end_factor": 1.0,
        "/0/total_iters": 3,
        "/1": "torch.optim.lr_scheduler.CosineAnnealingLR",
        "/1/T_max": 9,
        "/1/eta_min": 0.125,
    }
    assert not any("param_names" in key[2] for key in told(logger))


def test_accumulation_that_a_callback_sets_is_told_as_it_sets_it_alone() -> None:
    logger, keeper = prov4ml.ProvMLLogger(), GradientAccumulationScheduler({0: 2, 1: 4})
    teacher = trainer(logger, callbacks=[keeper])
    assert teacher.accumulate_grad_batches == 1
    teacher.fit(Digits(), digits(), digits())
    teacher.test(Digits(), digits(), verbose=False)
    assert (teacher.accumulate_grad_batches, teacher.global_step) == (4, 2 + 1)
    found = {key[2]: facts for key, facts in told(logger).items() if "ccumul" in key[2]}
    scheduling = "callback/GradientAccumulationScheduler/scheduling"
    assert found.keys() == {scheduling, scheduling.rpartition("/")[0]}
    assert found[scheduling]["value"] == (str, "{0: 2, 1: 4}")


class Typed(Digits):
    """Takes images in the type of its weights, and takes down what it trained with."""

    def loss(self, batch: Any) -> torch.Tensor:
        images, labels = batch
        return super().loss((images.to(self.layer.weight.dtype), labels))

    def on_train_start(self) -> None:
        self.types = {str(one.dtype).removeprefix("torch.") for one in self.parameters()}


@pytest.mark.parametrize("precision", ["16-true", "32-true", "64-true", "bf16-mixed", "bf16-true"])
def test_precision_and_types_are_those_that_a_training_has(precision: str) -> None:
    logger, model = prov4ml.ProvMLLogger(lineage=["model", "trainer"]), Typed()
    teacher = trainer(logger, max_epochs=1, precision=precision)
    teacher.fit(model, digits(), digits())
    found = told(logger)
    assert (teacher.precision, teacher.gradient_clip_val, teacher.min_steps) == (
        precision,
        None,
        None,
    )
    assert {key: found[key] for key in found if "Parameter" in key[0]} == of_trainer(teacher)
    assert found["provml:Model", None, "Typed"]["dtypes"] == (str, ", ".join(model.types))
    size = sum(one.numel() * one.element_size() for one in model.parameters())
    assert found["provml:Model", None, "Typed"]["parameter_bytes"] == (int, size)


class Colour(Enum):
    RED = "red"


class Painter(Callback):
    """Is built with every kind of value that is plain, and with some that are not."""

    def __init__(
        self, *, colour: Any, folder: Any, pause: Any, betas: Any, rates: Any, by_epoch: Any,
        factor: Any, text: Any, count: Any, whole: Any, flag: Any, empty: Any, anything: Any,
        weights: Any, some: Any,
    ) -> None:  # fmt: skip
        given = {name: value for name, value in locals().items() if name != "self"}
        vars(self).update(given, later=5)


def test_every_plain_value_that_a_callback_was_built_with_is_told() -> None:
    painter = Painter(
        colour=Colour.RED, folder=Path("some", "where"), pause=timedelta(seconds=90),
        betas=(0.5, 1), rates=[0.25], by_epoch={0: 2}, factor=torch.tensor(0.125), text="a b",
        count=3, whole=2.0, flag=False, empty=None, anything=object(), weights=torch.zeros(2),
        some=[object()],
    )  # fmt: skip
    logger = prov4ml.ProvMLLogger(lineage=["callbacks"])
    trainer(logger, callbacks=[painter], max_epochs=1).fit(Digits(), digits(), digits())
    assert told(logger) == parameters({
        "callback/Painter": class_of(painter),
        "callback/Painter/colour": "red", "callback/Painter/folder": "some/where",
        "callback/Painter/pause": "0:01:30", "callback/Painter/betas": "(0.5, 1)",
        "callback/Painter/rates": "[0.25]", "callback/Painter/by_epoch": "{0: 2}",
        "callback/Painter/factor": 0.125, "callback/Painter/text": "a b",
        "callback/Painter/count": 3, "callback/Painter/whole": 2.0,
        "callback/Painter/flag": False,
    })  # fmt: skip
