"""The story of a Trainer: stages, epochs, data, settings and checkpoints, told to a run."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from lightning.pytorch import Callback
from typing_extensions import override

from provml_lightning.domain.context import Context
from provml_lightning.domain.records import ContextDeclared
from provml_lightning.errors import ProvMLError
from provml_lightning.loggers.lineage.checkpoints import Checkpoints
from provml_lightning.loggers.lineage.hearing import listen
from provml_lightning.loggers.lineage.quiet import quiet
from provml_lightning.loggers.lineage.saving import (
    announced,
    context_of_save,
    path_of_call,
    scores_of,
    wait_for_writer,
    writes_later,
)
from provml_lightning.loggers.lineage.spans import Spans, SpansOf
from provml_lightning.loggers.lineage.telling import (
    Models,
    tell_data,
    tell_epoch,
    tell_optimizers,
    tell_settings,
)
from provml_lightning.loggers.recording import lightning_rank
from provml_lightning.loggers.stages import SANITY_CHECK, context_of_stage, has_run
from provml_lightning.loggers.trainers import Trainers
from provml_lightning.runtime.faults import warn
from provml_lightning.runtime.run import Run

__all__ = ["Story"]


class Story:
    """What is told of a Trainer; nothing of it stops a training.

    Args:
        parts: What is told, of :data:`~provml_lightning.loggers.lineage.parts.PARTS`.
        run: Returns the run.
        untold: The class of callbacks that are no part of it.

    Attributes:
        parts: What is told.
    """

    def __init__(
        self, parts: frozenset[str], run: Callable[[], Run], untold: type[Callback]
    ) -> None:
        self.parts = parts
        self._run = run
        self._untold = untold
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._trainers = Trainers()
        self._told_to: weakref.ref[Run] | None = None
        self._checkpoints = Checkpoints()
        self._begun: weakref.WeakSet[Any] = weakref.WeakSet()
        self._spans = SpansOf()
        self._epochs: dict[str, float] = {}
        self._origin_is_told = True
        self._models = Models()
        self._trained: weakref.ref[Any] | None = None

    @override
    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs to tell a story of its own."""
        return {name: self.__dict__[name] for name in ("parts", "_run", "_untold")}

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
    def enter(self, trainer: Any, module: Any) -> None:
        """Tell what is true of a ``fit``, ``validate``, ``test`` or ``predict`` from the start."""
        self._begun.add(trainer)
        self._spans[trainer], self._origin_is_told = Spans(), False
        self._tell_settings(trainer)
        if self.keeps_checkpoints:
            self._checkpoints.take_up(self._known_run())
            self._hear_of_weights_alone(trainer, module)
        if "model" in self.parts and lightning_rank() == 0:
            self._tell_model(trainer, module)

    @quiet
    def begin(self, trainer: Any, context: str) -> None:
        """Tell that a stage begins, from which checkpoint, and with which data.

        The loaders of a sanity check are there when the validation in it begins, not before.
        """
        if trainer not in self._begun:
            self.enter(trainer, trainer.lightning_module)
        run = self._known_run()
        if trainer.sanity_checking and context != SANITY_CHECK:
            self._tell_data(trainer, SANITY_CHECK)
            return
        is_first = self._spans[trainer].begin(context)
        if is_first and "stages" in self.parts:
            run.record(ContextDeclared(time=time.time_ns(), context=context))
        if is_first and context != SANITY_CHECK:
            self._tell_origin(trainer, context)
            self._tell_data(trainer, context)

    @quiet
    def end(self, trainer: Any, context: str) -> None:
        """Take down when a stage has ended; one that comes again, ends again."""
        if trainer.sanity_checking and context != SANITY_CHECK:
            return
        self._spans[trainer].end(context)
        self._settle(trainer)

    @quiet
    def leave(self, trainer: Any) -> None:
        """Take down that a ``fit``, ``validate``, ``test`` or ``predict`` ends: so does its stage.

        All callbacks have then heard of that end, and done what they do at it.
        """
        self._part(trainer)
        self._spans[trainer].end(context_of_stage(trainer))

    @quiet
    def end_all(self, trainer: Any) -> None:
        """Take down that an exception ended whatever was under way.

        A process that only started those that train hears of it too, and has nothing to tell.
        """
        self._part(trainer)
        if self._told_to is None:
            return
        self._checkpoints.doubt()
        self._spans[trainer].end_all()
        self._settle(trainer)

    @quiet
    def begin_epoch(self, trainer: Any, context: str) -> None:
        """Take down when an epoch begins."""
        self.follow(trainer)  # another one may have worked within this one's epoch before
        self._epochs[context] = time.perf_counter()
        self._settle(trainer)

    @quiet
    def end_epoch(self, trainer: Any, context: str) -> None:
        """Tell how long an epoch took."""
        self.follow(trainer)
        began = self._epochs.pop(context, None)
        if began is None or "epochs" not in self.parts or trainer.sanity_checking:
            return
        tell_epoch(self._known_run(), trainer, context, time.perf_counter() - began)

    @quiet
    def tell_optimizers(self, trainer: Any) -> None:
        """Tell the optimizers as they are when a training begins, restored ones too."""
        if "optimizers" in self.parts:
            tell_optimizers(self._known_run(), trainer)

    @quiet
    def saving(self, trainer: Any) -> None:
        """Take down that a checkpoint is about to be written."""
        path = path_of_call(trainer)
        if path is None or not self._hears(trainer):
            return
        self.follow(trainer)
        run = self._known_run()
        self._checkpoints.take_up(run)
        self._settle(trainer)
        self._checkpoints.expect(run, announced(trainer, path), queued=writes_later(trainer))

    @quiet
    def ended_saving(self, trainer: Any, *, failed: bool) -> None:
        """Take down that a save has failed, or has ended after a training: nothing follows then.

        What a thread writes has only begun, and it raises what it met with an earlier one.
        """
        path = path_of_call(trainer)
        if path is None or not self._hears(trainer) or writes_later(trainer):
            return
        self._checkpoints.ended(self._known_run(), path, context_of_save(trainer), failed=failed)
        if not failed and context_of_stage(trainer) is None:
            self._settle(trainer)

    @quiet
    def saved(self, callback: Any) -> None:
        """Tell of the checkpoint that a ModelCheckpoint has just written."""
        if (trainer := self._trainers.current) is not None and self.keeps_checkpoints:
            scores, now = scores_of(callback, trainer), announced(trainer, "")
            self._checkpoints.saved(self._known_run(), callback, scores, now)
            self._settle(trainer)

    @quiet
    def finish(self, run: Run) -> None:
        """Tell a run what is left, before its documents are written."""
        trainer = self._trainers.current
        if "stages" in self.parts:
            for spans in list(self._spans.values()):
                spans.tell(run)
        if self.keeps_checkpoints:
            saving = [] if trainer is None else trainer.checkpoint_callbacks
            during = None if trainer is None else context_of_save(trainer)
            if self._checkpoints.is_waiting:
                wait_for_writer(trainer)
            self._checkpoints.finish(run, saving, during, trains=self._trained is not None)

    def _part(self, trainer: Any) -> None:
        self._begun.discard(trainer)
        self._trainers.part()

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

    def _hears(self, trainer: Any) -> bool:
        """Tell whether a Trainer's saves are told; those of one that never ran are nobody's."""
        return self.keeps_checkpoints and has_run(trainer)

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

    @quiet
    def _hear_of_weights_alone(self, trainer: Any, module: Any) -> None:
        listen(trainer, module)

    @quiet
    def _tell_data(self, trainer: Any, context: str) -> None:
        if "data" in self.parts:
            tell_data(self._known_run(), trainer, context)

    @quiet
    def _tell_settings(self, trainer: Any) -> None:
        tell_settings(self._known_run(), trainer, self.parts, self._untold)

    @quiet
    def _tell_model(self, trainer: Any, module: Any) -> None:
        self._models.tell(self._known_run(), trainer, module)

    def _begin_training(self, module: Any, *, anew: bool) -> None:
        """Remember the module; another one than before, from no checkpoint, begins anew."""
        before, self._trained = self._trained, weakref.ref(module)
        if anew and (before is None or before() is not module):
            self._checkpoints.begin_anew()

    @quiet
    def _tell_origin(self, trainer: Any, context: str) -> None:
        """Tell the checkpoint that a ``fit``, ``validate``, ``test`` or ``predict`` began from."""
        if self._origin_is_told:
            return
        self._origin_is_told = True
        path = trainer.ckpt_path
        if context == Context.TRAINING.value:
            self._begin_training(trainer.lightning_module, anew=not path)
        if path and self.keeps_checkpoints:
            step = trainer.global_step if context == Context.TRAINING.value else None
            used = replace(announced(trainer, str(path)), context=context, step=step, attributes={})
            self._checkpoints.use(self._known_run(), used)
