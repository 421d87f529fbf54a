"""How a logger meets a Trainer before that introduces itself, or if it never does."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from types import FrameType
from typing import Any

from provml_lightning.capture.callers import calls_of
from provml_lightning.capture.foreign import attribute
from provml_lightning.loggers.lineage.hearing import listen
from provml_lightning.loggers.lineage.watcher import Lineage

__all__ = ["callbacks_of", "introduces_itself", "trainer_of_setup"]


def trainer_of_setup(caller: FrameType) -> Any:
    """Return the Trainer that asks for a logger's experiment before it begins; None for others.

    Args:
        caller: Who reads ``experiment``.

    Source:
        Lightning 2.6 does so in ``_call_setup_hook(trainer)``, before hyperparameters and module
        are logged; the argument is looked at, nothing is changed.
    """
    asks = caller.f_code.co_name == "_call_setup_hook"
    return caller.f_locals.get("trainer") if asks else None


def introduces_itself(trainer: Any) -> bool:
    """Tell whether a Trainer will call ``log_graph``.

    Source:
        With ``enable_autolog_hparams=False`` Lightning 2.6 does not.
    """
    return attribute(trainer, "enable_autolog_hparams") is not False


def callbacks_of(caller: FrameType | None) -> list[Lineage]:
    """Return the callbacks of the loggers that a Trainer is given which is being made just now.

    A Trainer that trains in processes which it spawns or forks meets its loggers there alone. In
    this process only a callback that it has from the start hears when it saves.

    Args:
        caller: Who asks, from within ``Trainer(logger=...)``; its argument is looked at.
    """
    for told in calls_of("__init__", caller):
        if "logger" in told and "callbacks" in told:
            given = told["logger"]
            loggers = given if isinstance(given, Collection) else [given]
            found = [attribute(logger, "lineage_callback") for logger in loggers]
            joining = [one for one in found if isinstance(one, Lineage)]
            if any(one.story.keeps_checkpoints for one in joining):
                with suppress(Exception):  # tried again when they meet, and told then
                    listen(told["self"])
            return joining
    return []
