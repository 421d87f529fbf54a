"""The story of a Trainer: stages, epochs, data, settings and checkpoints, told to a run."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lightning.pytorch import Callback
from typing_extensions import override

from provml_lightning.domain.context import Context
from provml_lightning.domain.records import ContextDeclared
from provml_lightning.loggers.lineage.checkpointing import Checkpointing
from provml_lightning.loggers.lineage.quiet import quiet
from provml_lightning.loggers.lineage.saving import announced, context_of_save
from provml_lightning.loggers.lineage.spans import SpansOf
from provml_lightning.loggers.lineage.telling import (
    Models,
    tell_data,
    tell_epoch,
    tell_optimizers,
    tell_settings,
)
from provml_lightning.loggers.recording import lightning_rank
from provml_lightning.loggers.stages import SANITY_CHECK, context_of_stage
from provml_lightning.loggers.trainers import Trainers
from provml_lightning.runtime.run import Run

__all__ = ["Story"]


class Story(Checkpointing):
    """What is told of a Trainer; nothing of it stops a training.

    Args:
        parts: What is told, of :data:`~provml_lightning.loggers.lineage.parts.PARTS`.
        run: Returns the run.
        trainers: Those that work.
        untold: The class of callbacks that are no part of it.
    """

    def __init__(
        self,
        parts: frozenset[str],
        run: Callable[[], Run],
        trainers: Trainers,
        untold: type[Callback],
    ) -> None:
        super().__init__(parts, run, trainers)
        self._untold = untold

    @override
    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_untold": self._untold}

    @override
    def _begin_run(self) -> None:
        super()._begin_run()
        self._begun: weakref.WeakSet[Any] = weakref.WeakSet()
        self._spans = SpansOf()
        self._models = Models()

    @quiet
    def enter(self, trainer: Any, module: Any) -> None:
        """Tell what is true of a ``fit``, ``validate``, ``test`` or ``predict`` from the start."""
        self._known_run()  # with another run another story begins
        self._begun.add(trainer)
        self._spans.begin(trainer)
        self._tell_settings(trainer)
        if self.keeps_checkpoints:
            self._checkpoints.take_up(self._known_run())
            self.listen(trainer)
        if context_of_save(trainer) != Context.TRAINING.value:
            self._load(trainer)
        if "model" in self.parts and lightning_rank() == 0:
            self._tell_model(trainer, module)

    @quiet
    def begin_fit(self, trainer: Any) -> None:
        """Take that Lightning has loaded what a ``fit`` goes on from; some strategies do later."""
        if not trainer.strategy.restore_checkpoint_after_setup:
            self._load(trainer)

    def _load(self, trainer: Any) -> None:
        if self.keeps_checkpoints and trainer.ckpt_path:
            loaded = announced(trainer, str(trainer.ckpt_path))
            self._checkpoints.take_up(self._known_run())
            self._checkpoints.load(self._known_run(), loaded)

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
        is_first = self._spans.of(trainer).begin(context)
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
        self._spans.of(trainer).end(context)
        self._settle(trainer)

    @quiet
    def leave(self, trainer: Any) -> None:
        """Take down that a ``fit``, ``validate``, ``test`` or ``predict`` ends: so does its stage.

        All callbacks have then heard of that end, and done what they do at it.
        """
        self._begun.discard(trainer)
        self._spans.of(trainer).end(context_of_stage(trainer))

    @quiet
    def end_all(self, trainer: Any) -> None:
        """Take down that an exception ended whatever was under way.

        A process that only started those that train hears of it too, and has nothing to tell.
        """
        self._begun.discard(trainer)
        if self._told_to is None:
            return
        self._checkpoints.expected.doubt()
        self._spans.of(trainer).end_all()
        self._settle(trainer)

    @quiet
    def begin_epoch(self, trainer: Any, context: str) -> None:
        """Take down when an epoch begins."""
        self._spans.of(trainer).epochs[context] = time.perf_counter()
        self._settle(trainer)

    @quiet
    def end_epoch(self, trainer: Any, context: str) -> None:
        """Tell how long an epoch took."""
        began = self._spans.of(trainer).epochs.pop(context, None)
        if began is None or "epochs" not in self.parts or trainer.sanity_checking:
            return
        tell_epoch(self._known_run(), trainer, context, time.perf_counter() - began)

    @quiet
    def tell_optimizers(self, trainer: Any) -> None:
        """Tell the optimizers as they are when a training begins, restored ones too."""
        if "optimizers" in self.parts:
            tell_optimizers(self._known_run(), trainer)

    @quiet
    @override
    def finish(self, run: Run) -> None:
        if "stages" in self.parts:
            self._spans.tell(run)
        super().finish(run)

    @quiet
    def _tell_data(self, trainer: Any, context: str) -> None:
        data = tell_data(self._known_run(), trainer, context) if "data" in self.parts else []
        if context == Context.TRAINING.value:
            self._checkpoints.weights.feed(weakref.ref(trainer.lightning_module), data)

    @quiet
    def _tell_settings(self, trainer: Any) -> None:
        tell_settings(self._known_run(), trainer, self.parts, self._untold)

    @quiet
    def _tell_model(self, trainer: Any, module: Any) -> None:
        self._models.tell(self._known_run(), trainer, module)

    @quiet
    def _tell_origin(self, trainer: Any, context: str) -> None:
        """Tell the checkpoint that a ``fit``, ``validate``, ``test`` or ``predict`` began from."""
        spans = self._spans.of(trainer)
        if spans.is_origin_told:
            return
        spans.is_origin_told = True
        path = trainer.ckpt_path
        if context == Context.TRAINING.value:
            self._has_trained = True
            if not path:
                self._checkpoints.weights.begin(weakref.ref(trainer.lightning_module))
        if path and self.keeps_checkpoints:
            step = trainer.global_step if context == Context.TRAINING.value else None
            used = replace(announced(trainer, str(path)), context=context, step=step, attributes={})
            self._checkpoints.use(self._known_run(), used)
