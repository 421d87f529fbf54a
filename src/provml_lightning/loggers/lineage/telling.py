"""What a Trainer, its model and its data are, as facts of a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lightning.pytorch import Callback

from provml_lightning.capture.artifacts import write_value
from provml_lightning.capture.foreign import class_name
from provml_lightning.capture.torch_objects import described_dataset, model_facts, model_layers
from provml_lightning.capture.trainers import logged_step, step_of_epoch
from provml_lightning.domain.catalogue import EPOCH_TIME
from provml_lightning.domain.context import Context
from provml_lightning.domain.names import folder_name
from provml_lightning.domain.records import Dataset, Model
from provml_lightning.domain.values import Plain
from provml_lightning.loggers.lineage.earlier import is_model_told
from provml_lightning.loggers.lineage.loaders import data_module_of, loaders_of
from provml_lightning.loggers.lineage.saving import SOURCE
from provml_lightning.loggers.lineage.settings import (
    callback_settings,
    optimizer_settings,
    seeds,
    trainer_settings,
)
from provml_lightning.loggers.parameters import keep_parameters
from provml_lightning.runtime.active import aimed_at
from provml_lightning.runtime.run import Run
from provml_lightning.runtime.shelf import keep

__all__ = [
    "Models",
    "tell_data",
    "tell_epoch",
    "tell_optimizers",
    "tell_settings",
]

# Strategies that leave a rank a piece of each parameter: what it can count is not the model.
_SHARDED = ("FSDPStrategy", "ModelParallelStrategy", "DeepSpeedStrategy")


def tell_settings(run: Run, trainer: Any, parts: frozenset[str], without: type[Callback]) -> None:
    """Tell how a Trainer works, its seeds and its callbacks."""
    asked: dict[str, Callable[[], dict[str, Any]]] = {
        "trainer": lambda: trainer_settings(trainer),
        "seeds": seeds,
        "callbacks": lambda: callback_settings(trainer, without),
    }
    for part, settings in asked.items():
        if part in parts:
            keep_parameters(run, settings(), source=SOURCE)


def tell_optimizers(run: Run, trainer: Any) -> None:
    """Tell the optimizers and schedulers that a training begins with."""
    settings = optimizer_settings(trainer)
    keep_parameters(run, settings, context=Context.TRAINING.value, source=SOURCE)


def tell_epoch(run: Run, trainer: Any, context: str, took: float) -> None:
    """Tell how long an epoch took [s], at the step where the Trainer logs that epoch's metrics."""
    is_training = context == Context.TRAINING.value
    run.record_metric(
        EPOCH_TIME.name,
        took,
        context,
        step_of_epoch(trainer) if is_training else logged_step(trainer),
        SOURCE,
        epoch=trainer.current_epoch,
        unit=EPOCH_TIME.unit,
    )


def tell_data(run: Run, trainer: Any, context: str) -> list[int]:
    """Tell the data sets that a Trainer reads in a context; return when each was told [ns]."""
    told: list[int] = []
    module = data_module_of(trainer, context)
    more = {} if module is None else {"data_module": class_name(module)}
    for label, loader in loaders_of(trainer, context).items():
        described = {**described_dataset(loader), **more}
        told.append(max(time.time_ns(), told[-1] + 1 if told else 0))
        run.record(
            Dataset(
                time=told[-1], label=label, context=context, source=SOURCE, attributes=described
            )
        )
    return told


class Models:
    """Tells what a module is, once for as long as it stays that."""

    def __init__(self) -> None:
        self._told: object = None

    def tell(self, run: Run, trainer: Any, module: Any) -> None:
        """Tell a run, in whatever process, what it was not told yet."""
        facts, layers = facts_of(trainer, module), model_layers(module)
        name = type(module).__name__
        if self._told == (run.opened.uuid, facts, layers):
            return
        if not is_model_told(run.layout, SOURCE, name, facts, layers):
            tell_model(run, name, facts, layers)
        self._told = run.opened.uuid, facts, layers


def facts_of(trainer: Any, module: Any) -> dict[str, Plain]:
    """Return the numbers of a module as far as this rank can count them."""
    facts = model_facts(module)
    facts.pop("training", None)  # whether it trains is the stage's, not the model's
    if type(trainer.strategy).__name__.startswith(_SHARDED):
        return {"class": facts["class"], "sharded": True}
    return facts


def tell_model(run: Run, name: str, facts: dict[str, Plain], layers: list[dict[str, Any]]) -> None:
    """Tell what a module is made of: its numbers, and its layers in a file."""
    described = Model(
        time=time.time_ns(), name=name, source=SOURCE, is_input=True, attributes=facts
    )
    stem = folder_name(name)
    with aimed_at(run):
        keep(
            lambda folder: [write_value(layers, folder / stem, f"{stem}_layers")],
            lambda stored: replace(described, layers=stored[0]),
        )
