"""The context of a value that comes through Lightning."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from provml_lightning.domain.context import PREDICTION, Context
from provml_lightning.domain.records import Status
from provml_lightning.domain.values import flatten
from provml_lightning.runtime.outcome import outcome_of

__all__ = [
    "SANITY_CHECK",
    "context_of_name",
    "context_of_stage",
    "meaning_of",
    "split_epoch",
    "stage_and_epoch",
]

SANITY_CHECK = "Sanity checking"
# Values of lightning.pytorch.trainer.states.RunningStage
_STAGES = {
    "train": Context.TRAINING.value,
    "sanity_check": SANITY_CHECK,
    "validate": Context.VALIDATION.value,
    "test": Context.TESTING.value,
    "predict": PREDICTION,
}
_NUMBERS = (float, int)
_NAMES = {
    "train": Context.TRAINING.value,
    "training": Context.TRAINING.value,
    "val": Context.VALIDATION.value,
    "valid": Context.VALIDATION.value,
    "validation": Context.VALIDATION.value,
    "test": Context.TESTING.value,
    "testing": Context.TESTING.value,
}


def context_of_stage(trainer: Any) -> str | None:
    """Return the context of what a Trainer does now; None where it does nothing."""
    stage = getattr(trainer.state, "stage", None)
    return None if stage is None else _STAGES.get(stage._value_)  # of an enum: .value is a call


def stage_and_epoch(trainer: Any, told: int | None) -> tuple[str | None, int | None]:
    """Return the context of what a Trainer does now, and its epoch where none was told.

    Both are None where no Trainer is known, the epoch too where it does nothing.
    """
    stage = None if trainer is None else context_of_stage(trainer)
    return stage, trainer.current_epoch if told is None and stage is not None else told


def context_of_name(name: str) -> str | None:
    """Return the context that a metric's name says, for values of no Trainer; None where none."""
    return _NAMES.get(re.split(r"[_/.\- ]", name, maxsplit=1)[0].lower())


def split_epoch(metrics: Mapping[str, Any]) -> tuple[dict[str, Any], int | None]:
    """Return the values without the epoch that Lightning puts among them, and that epoch.

    What is nested is flattened with ``/``; a name that is no text becomes it. An ``epoch`` that
    is no whole number is a metric.
    """
    values = dict(metrics)
    for name, value in values.items():
        if value.__class__ not in _NUMBERS or name.__class__ is not str:  # none of the Trainer's is
            values = flatten(metrics)
            break
    epoch = values.get("epoch")
    if epoch.__class__ is int or (isinstance(epoch, float) and epoch.is_integer()):
        del values["epoch"]
        return values, int(epoch)
    return values, None


def meaning_of(told: str, error: BaseException | None) -> Status | None:
    """Return what a status of Lightning's, or of anybody's, means; None where the run goes on.

    Source:
        Lightning 2.6 sends "success", "failed", and "finished" when SLURM is about to requeue.
    """
    if told == "finished":
        return None
    if error is not None:
        return outcome_of(error)
    known = {"success": Status.COMPLETED, "failed": Status.FAILED}
    return known.get(told, Status.INTERRUPTED)
