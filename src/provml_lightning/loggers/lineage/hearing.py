"""How saves of weights alone are heard of, which Lightning 2.6 tells to no callback."""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from lightning.fabric.plugins import CheckpointIO
from typing_extensions import override

from provml_lightning.capture.foreign import attribute

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["Listener", "ListeningIO", "listen"]

_heard: weakref.WeakSet[Any] = weakref.WeakSet()  # modules of strategies that write by themselves


@runtime_checkable
class Listener(Protocol):
    """A callback that hears of all saves."""

    def hear_save(self, trainer: Any) -> None:
        """Learn that a Trainer saves weights alone; its ``save_checkpoint`` is under way."""


class ListeningIO(CheckpointIO):
    """A Trainer's ``CheckpointIO``, of whose saves the Trainer's listeners hear before.

    The other one does the work, is asked for whatever else there is, and is what ``isinstance``
    sees.
    """

    def __init__(self, inner: Any) -> None:
        object.__setattr__(self, "_inner", inner)

    @property  # type: ignore[misc]
    @override
    def __class__(self) -> Any:
        return type(self._inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @override
    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    @override
    def __reduce__(self) -> Any:
        return ListeningIO, (self._inner,)

    @override
    def save_checkpoint(self, *args: Any, **options: Any) -> None:
        _hear()
        self._inner.save_checkpoint(*args, **options)

    @override
    def load_checkpoint(self, *args: Any, **options: Any) -> Any:
        return self._inner.load_checkpoint(*args, **options)

    @override
    def remove_checkpoint(self, *args: Any, **options: Any) -> None:
        self._inner.remove_checkpoint(*args, **options)

    @override
    def teardown(self) -> None:
        self._inner.teardown()


def listen(trainer: Any, module: Any = None) -> None:
    """Let the listeners among a Trainer's callbacks hear of saves of weights alone.

    Strategies whose ranks write their own parts (FSDP, DeepSpeed, ModelParallel) pass by the
    ``CheckpointIO``; there the module is heard when it is asked for its weights.

    Args:
        trainer: The Trainer.
        module: Its module, once it has one.
    """
    strategy = trainer.strategy
    if type(strategy.checkpoint_io) is not ListeningIO:
        strategy.checkpoint_io = ListeningIO(strategy.checkpoint_io)
    writes_itself = type(strategy).save_checkpoint.__qualname__ != "Strategy.save_checkpoint"
    if module is not None and writes_itself and module not in _heard:
        _heard.add(module)
        module.register_state_dict_pre_hook(_hear)


def _hear(*_: Any) -> None:
    trainer = _saves_weights()
    for callback in attribute(trainer, "callbacks") or ():
        if isinstance(callback, Listener):
            callback.hear_save(trainer)


def _saves_weights() -> Any:
    """Return the Trainer whose ``save_checkpoint(weights_only=True)`` this call comes from.

    Source:
        Lightning 2.6 calls every callback's ``on_save_checkpoint`` for all other saves. The
        caller's arguments are looked at, nothing is changed.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    while frame is not None:
        told = frame.f_locals if frame.f_code.co_name == "save_checkpoint" else {}
        if told.get("weights_only") and attribute(told.get("self"), "callbacks") is not None:
            return told["self"]
        frame = frame.f_back
    return None
