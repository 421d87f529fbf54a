"""Settings of a Trainer and of what works in it, by names that are easy to read.

Read are plain values alone, and short lists and mappings of them; no method of the user's is
called.
"""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from enum import Enum
from pathlib import PurePath
from typing import Any

from lightning.pytorch import Callback

from provml_lightning.capture.foreign import attribute, class_name
from provml_lightning.capture.torch_objects import initial_seed

__all__ = ["callback_settings", "optimizer_settings", "seeds", "trainer_settings"]

Settings = dict[str, Any]

_TRAINER = (
    "precision", "num_devices", "num_nodes", "world_size",
    "max_epochs", "min_epochs", "max_steps", "min_steps",
    "accumulate_grad_batches", "gradient_clip_val", "gradient_clip_algorithm",
    "val_check_interval", "check_val_every_n_epoch", "num_sanity_val_steps", "overfit_batches",
    "limit_train_batches", "limit_val_batches", "limit_test_batches", "limit_predict_batches",
    "log_every_n_steps", "reload_dataloaders_every_n_epochs",
)  # fmt: skip
_SIMPLE = (bool, int, float, str, Enum, PurePath, timedelta)
_LONGEST = 64  # members of a setting, and settings of one object
# What torch's schedulers keep under the name of an argument is where they are, not a setting.
_STATES = frozenset({"last_epoch", "verbose"})
_PARAMETERS = frozenset({"params", "param_names"})  # of a group; they are the model's


def trainer_settings(trainer: Any) -> Settings:
    """Return how a Trainer works: precision, strategy, devices, limits, accumulation."""
    told = {f"trainer/{name}": attribute(trainer, name) for name in _TRAINER}
    for name in ("accelerator", "strategy"):
        told[f"trainer/{name}"] = type(attribute(trainer, name)).__name__
    told["trainer/device"] = str(attribute(attribute(trainer, "strategy"), "root_device"))
    if any(map(_sets_accumulation, attribute(trainer, "callbacks") or ())):
        del told["trainer/accumulate_grad_batches"]  # where the callback left it; its own is true
    return _known(told)


def _sets_accumulation(callback: Any) -> bool:
    """Tell whether a callback sets it for each epoch; pytorch_lightning has a class of its own."""
    names = {kind.__name__ for kind in type(callback).__mro__}
    return "GradientAccumulationScheduler" in names


def seeds() -> Settings:
    """Return the seed that ``seed_everything`` set, and the one that torch began with."""
    told: Settings = {"seed/torch": initial_seed()}
    for name, variable in (("global", "PL_GLOBAL_SEED"), ("workers", "PL_SEED_WORKERS")):
        text = os.environ.get(variable, "")
        told[f"seed/{name}"] = int(text) if text.isdecimal() else None
    return _known(told)


def optimizer_settings(trainer: Any) -> Settings:
    """Return class and settings of every optimizer and scheduler of a training.

    An optimizer's are those of its groups of parameters; the groups after the first are numbered.
    """
    told: Settings = {}
    for name, optimizer in _named("optimizer", trainer.optimizers):
        told[name] = class_name(optimizer)
        for number, group in enumerate(optimizer.param_groups):
            prefix = f"{name}/group_{number}" if number else name
            own = {key: value for key, value in group.items() if key not in _PARAMETERS}
            told |= {f"{prefix}/{key}": value for key, value in own.items()}
    configs = trainer.lr_scheduler_configs
    for (name, scheduler), config in zip(
        _named("scheduler", [config.scheduler for config in configs]), configs, strict=True
    ):
        for key in ("interval", "frequency", "monitor", "name"):
            told[f"{name}/{key}"] = getattr(config, key)
        told |= _scheduler_settings(name, scheduler)
    return _known({key: value for key, value in told.items() if _is_plain(value)})


def _scheduler_settings(name: str, scheduler: Any, deepest: int = 2) -> Settings:
    """Return class and settings of a scheduler, and of those that it is made of, numbered."""
    told: Settings = {name: class_name(scheduler)}
    told |= {f"{name}/{key}": value for key, value in _arguments(scheduler, _STATES)}
    made_of = attribute(scheduler, "_schedulers")  # SequentialLR, ChainedScheduler of torch 2.13
    if deepest and isinstance(made_of, (list, tuple)):
        for number, inner in enumerate(made_of[:_LONGEST]):
            told |= _scheduler_settings(f"{name}/{number}", inner, deepest - 1)
    return told


def callback_settings(trainer: Any, without: type[Callback]) -> Settings:
    """Return class and settings of every callback of a Trainer but those of a class."""
    told: Settings = {}
    others = [one for one in trainer.callbacks if not isinstance(one, without)]
    for name, callback in _named("callback", others):
        told[name] = class_name(callback)
        told |= {f"{name}/{key}": value for key, value in _arguments(callback)}
    return _known(told)


def _named(kind: str, objects: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield objects with names of their own: the class, from the second of a class on numbered."""
    seen: Counter[str] = Counter()
    for one in objects:
        name = type(one).__name__
        seen[name] += 1
        yield f"{kind}/{name}" if seen[name] == 1 else f"{kind}/{name}.{seen[name]}", one


def _arguments(one: Any, without: Iterable[str] = ()) -> Iterator[tuple[str, Any]]:
    """Yield what an object keeps of the arguments that its class is built with.

    By custom that is an attribute of the same name, or of that name with a ``_`` before it; where
    there is one for each group of parameters, with an ``s`` behind it.
    """
    kept = attribute(one, "__dict__") or {}
    try:
        names = list(inspect.signature(type(one)).parameters)
    except (TypeError, ValueError):  # a class that says nothing of how it is built
        return
    for name in names[:_LONGEST]:
        value = next((kept[one] for one in (name, f"_{name}", f"{name}s") if one in kept), None)
        if name not in without and _is_plain(value):
            yield name, str(value) if isinstance(value, (timedelta, Mapping)) else value


def _is_plain(value: Any) -> bool:
    """Tell whether a value is a number or text, a tensor of one, or a few of them."""
    try:
        return _consists_of_plain(value)
    except Exception:  # noqa: BLE001  a foreign container may raise anything, or hold itself
        return False


def _consists_of_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return len(value) <= _LONGEST and all(
            map(_consists_of_plain, (*value.keys(), *value.values()))
        )
    if isinstance(value, (list, tuple)):
        return len(value) <= _LONGEST and all(map(_consists_of_plain, value))
    return isinstance(value, _SIMPLE) or attribute(value, "shape") == ()


def _known(settings: Settings) -> Settings:
    return {name: value for name, value in settings.items() if value is not None}
