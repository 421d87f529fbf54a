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
from provml_lightning.loggers.lineage.endings import Endings
from provml_lightning.loggers.trainers import is_trainer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

__all__ = ["Listener", "ListeningIO", "listen"]

_EAR = "_provml_ear"
_LOOPS = ("predict_loop", "test_loop", "validate_loop", "fit_loop")


class Listener(Callback):
    """A callback that hears of all saves."""

    def hear_save(self, trainer: Any) -> None:
        """Learn that a Trainer saves; its ``save_checkpoint`` is under way."""
        raise NotImplementedError

    def hear_end_of_save(self, trainer: Any, *, failed: bool, later: Future[bool] | None) -> None:
        """Learn that it has saved, or could not; its ``save_checkpoint`` is still under way.

        Args:
            trainer: The Trainer.
            failed: Whether it raised.
            later: Whether a thread that writes has failed, once it has ended.
        """
        raise NotImplementedError


class ListeningIO(CheckpointIO):
    """A Trainer's ``CheckpointIO``, of whose saves the Trainer's listeners hear.

    The other one does the work, is asked for whatever else there is, and is what ``isinstance``
    sees.
    """

    def __init__(self, inner: Any) -> None:
        object.__setattr__(self, "_provml_inner", inner)
        object.__setattr__(self, "_provml_endings", Endings(inner))

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
        trainer, _ = _saving()
        if not _has_ear(trainer):  # its loop was taken away
            _hear_of_weights()
        self._provml_endings.begin()
        try:
            answer = self._provml_inner.save_checkpoint(*args, **options)
        except BaseException:
            self._hear_of_end(failed=True)
            raise
        self._hear_of_end(failed=False)
        return answer

    def _hear_of_end(self, *, failed: bool) -> None:
        later = self._provml_endings.next()
        trainer, _ = _saving()
        for one in _listeners(trainer):
            one.hear_end_of_save(trainer, failed=failed, later=later)

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
    """A loop without steps: a Trainer asks its loops for their state whenever it saves.

    It has no state, so that no checkpoint holds anything of it.

    Args:
        kind: What the Trainer takes for a loop; pytorch_lightning has a class of its own.
    """

    def __init__(self, kind: type) -> None:
        self._kind = kind

    @property  # type: ignore[misc]
    @override
    def __class__(self) -> Any:
        return self._kind

    @override
    def __reduce__(self) -> Any:
        return _Ear, (self._kind,)

    def state_dict(self, *_: Any, **__: Any) -> None:
        """Let the listeners hear of a save of weights alone; Lightning tells them of others."""
        _hear_of_weights()

    def load_state_dict(self, *_: Any, **__: Any) -> None:
        """Take nothing from a checkpoint."""


def listen(trainer: Any) -> None:
    """Let the listeners among a Trainer's callbacks hear of its saves, and of how they end.

    Strategies whose ranks write their own parts (FSDP, DeepSpeed, ModelParallel) pass by the
    ``CheckpointIO``: there nobody hears of an end.

    Source:
        Lightning 2.6 calls ``state_dict`` of each of its loops for every checkpoint, before it is
        written; and so does each loop of those among its attributes.
    """
    if not _has_ear(trainer):
        loops = [getattr(trainer, name) for name in _LOOPS]
        loop = next((one for one in loops if _asks_its_own(one)), loops[0])
        kinds = [kind for kind in type(loop).__mro__ if kind.__name__ == "_Loop"]
        # Replaced and not changed: the Trainer may be on its way into a pickle just now.
        loop.__dict__ = {**loop.__dict__, _EAR: _Ear(*kinds)}
    if type(trainer.strategy.checkpoint_io) is not ListeningIO:
        trainer.strategy.checkpoint_io = ListeningIO(trainer.strategy.checkpoint_io)


def _asks_its_own(loop: Any) -> bool:
    return bool(type(loop).state_dict.__qualname__ == "_Loop.state_dict")


def _has_ear(trainer: Any) -> bool:
    loops = (attribute(trainer, name) for name in _LOOPS)
    return any(type(attribute(loop, _EAR)) is _Ear for loop in loops)


def _hear_of_weights() -> None:
    trainer, weights_only = _saving()
    if weights_only is not None and weights_only is not False:
        for one in _listeners(trainer):
            one.hear_save(trainer)


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
