"""What every monitor is: a Lightning callback that follows the Trainer from stage to stage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from typing_extensions import override

from provml_lightning.callbacks.cadence import STAGES, TESTING, TRAINING, VALIDATION, Cadence
from provml_lightning.callbacks.course import Course, Meter, Moment
from provml_lightning.callbacks.finding import sinks_of
from provml_lightning.callbacks.sinks import Sink
from provml_lightning.capture.trainers import logged_step, step_of_epoch
from provml_lightning.domain.context import PREDICTION
from provml_lightning.errors import ProvMLError, SamplerError
from provml_lightning.runtime.faults import warn

__all__ = ["Monitor"]


class Monitor(Callback, ABC):
    """Begins a course at ``setup``, tells it what the Trainer does, and ends it.

    Before ``setup`` and in another process it holds settings alone. A fault of ours while the
    Trainer works is one warning; the monitor then measures no more.
    """

    def __init__(
        self,
        every: Literal["step", "epoch"] = "epoch",
        every_n: int = 1,
        contexts: Sequence[str] = STAGES,
    ) -> None:
        super().__init__()
        self._cadence = Cadence.of(every, every_n, contexts)
        self._course: Course | None = None
        self._sinks: list[Sink] = []

    @abstractmethod
    def meters(self, trainer: Trainer, sinks: Sequence[Sink]) -> Sequence[Meter]:
        """Return what measures for some sinks."""

    @override
    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._close()
        self._sinks = sinks_of(trainer, type(self).__name__)
        try:
            if self._sinks:
                self._course = Course(self._cadence, self.meters(trainer, self._sinks))
        except BaseException:
            self._close()
            raise

    @override
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._follow(trainer, lambda course: course.enter(TRAINING))

    @override
    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        self._follow(
            trainer,
            lambda course: course.batch(*_trained(trainer, batch_idx), pl_module, batch),
        )

    @override
    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._follow(
            trainer,
            lambda course: course.epoch(_moment(trainer, TRAINING, step_of_epoch(trainer))),
        )

    @override
    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._follow(trainer, Course.leave)

    # Of several monitors each ends a stage before any begins the next: they share a sampler.

    @override
    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._follow(trainer, Course.pause)

    @override
    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._follow(trainer, lambda course: course.enter(VALIDATION))

    @override
    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        self._evaluated(trainer, VALIDATION, pl_module, batch, batch_idx, dataloader_idx)

    @override
    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._ended(trainer, VALIDATION)

    @override
    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._follow(trainer, Course.resume)

    @override
    def on_test_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._follow(trainer, lambda course: course.enter(TESTING))

    @override
    def on_test_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        self._evaluated(trainer, TESTING, pl_module, batch, batch_idx, dataloader_idx)

    @override
    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._ended(trainer, TESTING)

    @override
    def on_predict_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._follow(trainer, lambda course: course.enter(PREDICTION))

    @override
    def on_predict_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        self._evaluated(trainer, PREDICTION, pl_module, batch, batch_idx, dataloader_idx)

    @override
    def on_predict_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._ended(trainer, PREDICTION)

    @override
    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._finish(trainer)

    @override
    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        try:
            self._finish(trainer)  # teardown is not called then (lightning 2.6.6)
        except ProvMLError as failure:  # of a strict run; the user's own error is worth more
            warn(str(failure))

    @override
    def __getstate__(self) -> dict[str, Any]:
        """Return the settings: what is open stays in the process that opened it."""
        return {**self.__dict__, "_course": None, "_sinks": []}

    def _evaluated(
        self,
        trainer: Trainer,
        stage: str,
        module: LightningModule,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int,
    ) -> None:
        def note(course: Course) -> None:
            step = _seen(_loop(trainer, stage), batch_idx, dataloader_idx)
            course.batch(_moment(trainer, stage, step), step + 1, module, batch)

        self._follow(trainer, note)

    def _ended(self, trainer: Trainer, stage: str) -> None:
        def end(course: Course) -> None:
            course.epoch(_moment(trainer, stage))
            course.leave()

        self._follow(trainer, end)

    def _finish(self, trainer: Trainer) -> None:
        self._follow(trainer, lambda course: course.finish(lambda each: _moment(trainer, each)))
        self._close()

    def _follow(self, trainer: Trainer, act: Callable[[Course], None]) -> None:
        course = self._course
        if course is None or trainer.sanity_checking:
            return
        try:
            act(course)
        except Exception as error:  # noqa: BLE001  whatever it is, the training is worth more
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        name, sinks = type(self).__name__, self._sinks
        self._close()
        for sink in sinks:
            told = f"{name} measures no more: {type(error).__name__}: {error}"
            sink.excuse(name, SamplerError(told))

    def _close(self) -> None:
        course, self._course = self._course, None
        sinks, self._sinks = self._sinks, []
        if course is not None:
            course.close()
        for sink in sinks:
            sink.close()


def _moment(trainer: Trainer, stage: str, step: int | None = None) -> Moment:
    return Moment(stage, logged_step(trainer) if step is None else step, trainer.current_epoch)


def _trained(trainer: Trainer, batch_idx: int) -> tuple[Moment, int | None]:
    """Return the moment of a batch of training, and which step it ends, from 1 on, if one."""
    moment = _moment(trainer, TRAINING)
    steps = (batch_idx + 1) % trainer.accumulate_grad_batches == 0 or trainer.is_last_batch
    return moment, moment.step + 1 if steps else None


def _loop(trainer: Trainer, stage: str) -> Any:
    """Return the loop that works at a stage which does not train."""
    if stage == VALIDATION:
        fits = trainer.state.fn == "fit"
        return trainer.fit_loop.epoch_loop.val_loop if fits else trainer.validate_loop
    return trainer.test_loop if stage == TESTING else trainer.predict_loop


def _seen(loop: Any, batch_idx: int, dataloader_idx: int) -> int:
    """Return the batches that a loop saw of a loader, which is what loggers get as step there.

    Source:
        It goes on from one validation of a ``fit`` to the next; nothing public tells it
        (lightning 2.6.6).
    """
    seen: dict[int, int] = getattr(loop, "_seen_batches_per_dataloader", {})
    return seen.get(dataloader_idx, batch_idx)
