"""How a logger meets a Trainer that does not introduce itself."""

from __future__ import annotations

from types import FrameType
from typing import Any

from provml_lightning.capture.foreign import attribute

__all__ = ["silent_trainer"]


def silent_trainer(caller: FrameType) -> Any:
    """Return the Trainer that asks for a logger's experiment; None where it will say so itself.

    Args:
        caller: Who reads ``experiment``.

    Source:
        A Trainer of Lightning 2.6 with ``enable_autolog_hparams=False`` calls no ``log_graph``.
        It does ask for the experiment before it begins, in ``_call_setup_hook(trainer)``; the
        argument is looked at, nothing is changed.
    """
    if caller.f_code.co_name != "_call_setup_hook":
        return None
    trainer = caller.f_locals.get("trainer")
    return trainer if attribute(trainer, "enable_autolog_hparams") is False else None
