"""The part of a Trainer's story that is about its checkpoints."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import RLock
from typing import Any

from typing_extensions import override

from provml_lightning.domain.context import Context
from provml_lightning.errors import ProvMLError
from provml_lightning.loggers.lineage.checkpoints import Checkpoints
from provml_lightning.loggers.lineage.hearing import listen
from provml_lightning.loggers.lineage.quiet import quiet
from provml_lightning.loggers.lineage.saving import (
    announced,
    context_of_save,
    paths_of_call,
    scores_of,
    writes_later,
)
from provml_lightning.loggers.recording import lightning_rank
from provml_lightning.loggers.stages import context_of_stage
from provml_lightning.loggers.trainers import Trainers
from provml_lightning.runtime.faults import warn
from provml_lightning.runtime.run import Run

__all__ = ["Checkpointing"]


class Checkpointing:
    """What is told of a Trainer's checkpoints, in whatever process it saves them.

    Args:
        parts: What is told, of :data:`~provml_lightning.loggers.lineage.parts.PARTS`.
        run: Returns the run.

    Attributes:
        parts: What is told.
        lock: Held by the thread that tells.
    """

    def __init__(self, parts: frozenset[str], run: Callable[[], Run]) -> None:
        self.parts = parts
        self._run = run
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.lock = RLock()
        self._trainers = Trainers()
        self._told_to: weakref.ref[Run] | None = None
        self._checkpoints = Checkpoints()
        self._has_trained = False

    @override
    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs to tell a story of its own."""
        return {"parts": self.parts, "_run": self._run}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin anew in another process."""
        self.__dict__.update(state)
        self._begin_anew()

    def is_of(self, trainer: Any) -> bool:
        """Tell whether a Trainer is the one that is told of."""
        return self._trainers.current is trainer

    def follow(self, trainer: Any) -> None:
        """Take a Trainer as the one that is told of."""
        self._trainers.follow(trainer)

    @quiet
    def listen(self, trainer: Any) -> None:
        """Hear of a Trainer's saves, which it does not tell to callbacks alone."""
        if self.keeps_checkpoints:
            self._known_run()
            listen(trainer)

    def lend(self, trainer: Any) -> None:
        """Hear of a Trainer's saves while other processes work for it, which tell the rest."""
        if self.keeps_checkpoints:
            with suppress(Exception):  # it cannot be listened to: those others say so
                listen(trainer)
            if context_of_save(trainer) == Context.TRAINING.value:
                self._checkpoints.weights.lend(weakref.ref(trainer.lightning_module))

    @quiet
    def saving(self, trainer: Any) -> None:
        """Take down that a checkpoint is about to be written."""
        paths = paths_of_call(trainer)
        if not paths or not self.keeps_checkpoints:
            return
        self.follow(trainer)
        self.listen(trainer)  # another CheckpointIO may have been set since
        run = self._known_run()
        self._checkpoints.take_up(run)
        self._settle(trainer)
        if context_of_save(trainer) == Context.TRAINING.value and not trainer.ckpt_path:
            self._checkpoints.weights.begin(weakref.ref(trainer.lightning_module))
        for path in paths:
            self._checkpoints.expect(run, announced(trainer, path), queued=writes_later(trainer))

    @quiet
    def ended_saving(self, trainer: Any, *, failed: bool, later: Future[bool] | None) -> None:
        """Take down how a save has ended; one after a training is told then: nothing follows.

        What a thread writes has only begun, and it raises what it met with an earlier one.
        """
        paths = paths_of_call(trainer)
        if not paths or not self.keeps_checkpoints:
            return
        is_written = later is None and not writes_later(trainer)
        for path in paths:
            if later is not None:
                self._checkpoints.expected.await_end(path, later)
            elif is_written:
                during = context_of_save(trainer)
                self._checkpoints.ended(self._known_run(), path, during, failed=failed)
        if is_written and not failed and len(paths) == 1 and context_of_stage(trainer) is None:
            self._settle(trainer)

    @quiet
    def saved(self, callback: Any) -> None:
        """Tell of the checkpoint that a ModelCheckpoint has just written."""
        if (trainer := self._trainers.current) is not None and self.keeps_checkpoints:
            scores, now = scores_of(callback, trainer), announced(trainer, "")
            self._checkpoints.saved(self._known_run(), callback, scores, now)
            self._settle(trainer)

    def excuse(self, name: str, error: ProvMLError) -> None:
        """Say that something could not be told.

        Raises:
            ProvMLError: The run is strict.
        """
        run = None if self._told_to is None else self._told_to()
        topic = f"lineage: {name.strip('_')}"
        if run is None:
            return warn(f"{topic}: {error}")
        return run.excuse(topic, error)

    @property
    def keeps_checkpoints(self) -> bool:
        """Whether checkpoints are told here."""
        return "checkpoints" in self.parts and lightning_rank() == 0

    @quiet
    def finish(self, run: Run) -> None:
        """Tell a run what is left, before its documents are written."""
        trainer = self._trainers.current
        if self.keeps_checkpoints:
            saving = [] if trainer is None else trainer.checkpoint_callbacks
            during = None if trainer is None else context_of_save(trainer)
            self._checkpoints.finish(run, saving, during, trains=self._has_trained)

    def _known_run(self) -> Run:
        """Return the run, which asks for the rest of the story before it is written."""
        run = self._run()
        if self._told_to is None or self._told_to() is not run:
            self._told_to = weakref.ref(run)
            run.contributors.add(partial(self.finish, run))
        return run

    def _settle(self, trainer: Any) -> None:
        if self.keeps_checkpoints:
            self._checkpoints.settle(
                self._known_run(), trainer.checkpoint_callbacks, context_of_save(trainer)
            )
