"""The part of a Trainer's story that is about its checkpoints."""

from __future__ import annotations

import os
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
from provml_lightning.loggers.lineage.weights import State
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
        trainers: Those that work.

    Attributes:
        parts: What is told.
    """

    def __init__(self, parts: frozenset[str], run: Callable[[], Run], trainers: Trainers) -> None:
        self.parts = parts
        self._run = run
        self._trainers = trainers
        self._lent: State | None = None
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._process = os.getpid()
        self._lock = RLock()
        self._told_to: weakref.ref[Run] | None = None
        self._uuid: str | None = None
        self._saver: weakref.ref[Any] | None = None
        self._begin_run()

    def _begin_run(self) -> None:
        """Know of nothing that another run was told."""
        self._checkpoints = Checkpoints(self._lent)
        self._has_trained = False

    @property
    def lock(self) -> RLock:
        """Held by the thread that tells; a forked process has one of its own."""
        if self._process != os.getpid():
            self._process, self._lock, self._told_to = os.getpid(), RLock(), None
        return self._lock

    @override
    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs to tell a story of its own."""
        kept = ("parts", "_run", "_trainers", "_lent")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin anew in another process."""
        self.__dict__.update(state)
        self._begin_anew()

    def is_of(self, trainer: Any) -> bool:
        """Tell whether a Trainer is the one that is told of."""
        return self._trainers.current is trainer

    @quiet
    def listen(self, trainer: Any) -> None:
        """Hear of a Trainer's saves, which it does not tell to callbacks alone."""
        if self.keeps_checkpoints:
            self._known_run()  # what cannot be listened to is noted there
            listen(trainer)

    def lend(self, trainer: Any) -> None:
        """Hear of a Trainer's saves while other processes work for it, which tell the rest."""
        if self.keeps_checkpoints:
            with suppress(Exception):  # it cannot be listened to: those others say so
                listen(trainer)
            self._checkpoints.expect_others()
            if context_of_save(trainer) == Context.TRAINING.value:
                self._has_trained = False
                module = weakref.ref(trainer.lightning_module)
                self._lent = self._checkpoints.weights.lend(module)

    @quiet
    def saving(self, trainer: Any) -> None:
        """Take down that a checkpoint is about to be written."""
        paths = paths_of_call(trainer)
        if not paths or not self.keeps_checkpoints:
            return
        self._saver = weakref.ref(trainer)
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
        if (trainer := self._saver_of(callback)) is not None and self.keeps_checkpoints:
            scores, now = scores_of(callback, trainer), announced(trainer, "")
            self._checkpoints.saved(self._known_run(), callback, scores, now)
            self._settle(trainer)

    def _saver_of(self, callback: Any) -> Any:
        """Return the Trainer that a ModelCheckpoint has saved for; of those that none of our
        callbacks heard, the one that works.
        """
        saver = None if self._saver is None else self._saver()
        callbacks = [] if saver is None else saver.checkpoint_callbacks
        return saver if any(one is callback for one in callbacks) else self._trainers.current

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
            if self._uuid not in {None, run.opened.uuid}:
                self._lent = None
                self._begin_run()
            self._uuid, self._told_to = run.opened.uuid, weakref.ref(run)
            run.contributors.add(partial(self.finish, run))
        return run

    def _settle(self, trainer: Any) -> None:
        if self.keeps_checkpoints:
            self._checkpoints.settle(
                self._known_run(), trainer.checkpoint_callbacks, context_of_save(trainer)
            )
