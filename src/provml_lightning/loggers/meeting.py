"""How a logger meets a Trainer before that introduces itself, or if it never does."""

from __future__ import annotations

from types import FrameType
from typing import Any

from provml_lightning.capture.foreign import attribute

__all__ = ["introduces_itself", "trainer_of_setup"]


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
