"""How saves are heard of that Lightning 2.6 tells to no callback, and how each of them ended."""

from __future__ import annotations

import copy
import sys
from typing import TYPE_CHECKING, Any

from lightning.fabric.plugins import CheckpointIO
from lightning.pytorch import Callback
from typing_extensions import override

from provml_lightning.capture.callers import calls_of
from provml_lightning.capture.foreign import attribute
from provml_lightning.loggers.trainers import is_trainer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Listener", "ListeningIO", "listen"]


class Listener(Callback):
    """A callback that hears of all saves."""

    def hear_save(self, trainer: Any) -> None:
        """Learn that a Trainer saves; its ``save_checkpoint`` is under way."""
        raise NotImplementedError

    def hear_end_of_save(self, trainer: Any, *, failed: bool) -> None:
        """Learn that it has saved, or could not; its ``save_checkpoint`` is still under way."""
        raise NotImplementedError


class ListeningIO(CheckpointIO):
    """A Trainer's ``CheckpointIO``, of whose saves the Trainer's listeners hear.

    The other one does the work, is asked for whatever else there is, and is what ``isinstance``
    sees.
    """

    def __init__(self, inner: Any) -> None:
        object.__setattr__(self, "_provml_inner", inner)

    @property  # type: ignore[misc]
    @override
    def __class__(self) -> Any:
        return type(self._provml_inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provml_inner, name)

    @override
    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._provml_inner, name, value)

    @override
    def __delattr__(self, name: str) -> None:
        delattr(self._provml_inner, name)

    @override
    def __repr__(self) -> str:
        return repr(self._provml_inner)

    @override
    def __reduce__(self) -> Any:
        return ListeningIO, (self._provml_inner,)

    def __copy__(self) -> ListeningIO:
        return ListeningIO(copy.copy(self._provml_inner))

    @override
    def save_checkpoint(self, *args: Any, **options: Any) -> Any:
        _hear_of_weights()
        try:
            answer = self._provml_inner.save_checkpoint(*args, **options)
        except BaseException:
            _hear_of_end(failed=True)
            raise
        _hear_of_end(failed=False)
        return answer

    @override
    def load_checkpoint(self, *args: Any, **options: Any) -> Any:
        return self._provml_inner.load_checkpoint(*args, **options)

    @override
    def remove_checkpoint(self, *args: Any, **options: Any) -> Any:
        return self._provml_inner.remove_checkpoint(*args, **options)

    @override
    def teardown(self) -> Any:
        return self._provml_inner.teardown()


class _Ear:
    """Hears when a module is asked for its weights; a copy or pickle of the module has none."""

    def __call__(self, *_: Any) -> None:
        _hear_of_weights()

    @override
    def __reduce__(self) -> Any:
        # The copy must load where this package is not. What takes this one's place there is the
        # class ``slice``: torch calls it with three arguments, and nothing comes of it.
        return type, (slice(None),)


def listen(trainer: Any, module: Any = None) -> None:
    """Let the listeners among a Trainer's callbacks hear of its saves.

    Strategies whose ranks write their own parts (FSDP, DeepSpeed, ModelParallel) pass by the
    ``CheckpointIO``; there the module is heard when it is asked for its weights.

    Args:
        trainer: The Trainer.
        module: Its module, once it has one.
    """
    strategy = trainer.strategy
    writes_itself = type(strategy).save_checkpoint.__qualname__ != "Strategy.save_checkpoint"
    if module is not None and writes_itself:
        hooks = attribute(module, "_state_dict_pre_hooks") or {}  # of torch 2.13
        if not any(isinstance(one, _Ear) for one in hooks.values()):
            module.register_state_dict_pre_hook(_Ear())
    if type(strategy.checkpoint_io) is not ListeningIO:
        strategy.checkpoint_io = ListeningIO(strategy.checkpoint_io)


def _hear_of_weights() -> None:
    """Let the listeners hear of a save of weights alone; of others Lightning tells them itself."""
    trainer, weights_only = _saving()
    if weights_only is not None and weights_only is not False:
        for one in _listeners(trainer):
            one.hear_save(trainer)


def _hear_of_end(*, failed: bool) -> None:
    trainer, _ = _saving()
    for one in _listeners(trainer):
        one.hear_end_of_save(trainer, failed=failed)


def _listeners(trainer: Any) -> Iterator[Listener]:
    found = attribute(trainer, "callbacks") or ()
    return (one for one in list(found) if isinstance(one, Listener))


def _saving() -> tuple[Any, Any]:
    """Return the Trainer whose ``save_checkpoint`` this call comes from, and ``weights_only``.

    Source:
        Lightning 2.6; the caller's arguments are looked at, nothing is changed.
    """
    for told in calls_of("save_checkpoint", sys._getframe(1)):  # noqa: SLF001
        if "weights_only" in told and is_trainer(told.get("self")):
            return told["self"], told["weights_only"]
    return None, None
