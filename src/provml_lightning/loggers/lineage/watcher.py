"""The callback by which a logger learns what its Trainer does: hooks of Lightning's, no logic."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from typing_extensions import override

from provml_lightning.capture.foreign import attribute
from provml_lightning.domain.context import PREDICTION, Context
from provml_lightning.loggers.lineage.hearing import Listener
from provml_lightning.loggers.lineage.story import Story
from provml_lightning.loggers.stages import SANITY_CHECK

__all__ = ["Lineage"]

_TRAINING, _VALIDATION = Context.TRAINING.value, Context.VALIDATION.value
_TESTING = Context.TESTING.value


class Lineage(Listener):
    """Tells a story as it happens; it has no state of its own in checkpoints.

    The logger puts it among the Trainer's callbacks when the Trainer first speaks to it, or has
    others train.

    Attributes:
        story: What is told, and to which run.
    """

    # Lightning 2.6 passes over a hook that cannot be called, and spends microseconds on each that
    # can: of those that come with every batch none is ours.
    on_train_batch_start: Any = None
    on_train_batch_end: Any = None
    on_validation_batch_start: Any = None
    on_validation_batch_end: Any = None
    on_test_batch_start: Any = None
    on_test_batch_end: Any = None
    on_predict_batch_start: Any = None
    on_predict_batch_end: Any = None
    on_before_zero_grad: Any = None
    on_before_backward: Any = None
    on_after_backward: Any = None
    on_before_optimizer_step: Any = None

    def __init__(self, story: Story) -> None:
        super().__init__()
        self.story = story

    def join(self, trainer: Any) -> None:
        """Take a place among a Trainer's callbacks: the first that hears of a stage, or of a save.

        Only those that search for settings stay before it, as Lightning wants them. The list is
        replaced and not changed: somebody may be going through it just now.
        """
        others = [one for one in trainer.callbacks if one is not self]
        place = sum(map(_is_search, others))
        wanted = [*others[:place], self, *others[place:]]
        if wanted != trainer.callbacks:
            trainer.callbacks = wanted

    def stay_with(self, trainer: Any) -> None:
        """Hear of what a Trainer saves in this process, while others train for it."""
        known = attribute(trainer, "callbacks")
        if isinstance(known, list) and self._is_wanted(trainer):
            self.join(trainer)
            self.story.lend(trainer)

    @override
    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Leave a Trainer that was given another's callbacks, or whose logger was taken away; if it
        has our logger, that joins it again, before any stage begins.
        """
        if not (self.story.is_of(trainer) and self._is_wanted(trainer)):
            trainer.callbacks = [one for one in trainer.callbacks if one is not self]

    @override
    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self.story.begin_fit(trainer)

    @override
    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        self.story.begin(trainer, SANITY_CHECK)

    @override
    def on_sanity_check_end(self, trainer: Any, pl_module: Any) -> None:
        self.story.end(trainer, SANITY_CHECK)

    @override
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.story.begin(trainer, _TRAINING)
        self.story.tell_optimizers(trainer)

    @override
    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self.story.begin_epoch(trainer, _TRAINING)

    @override
    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self.story.end_epoch(trainer, _TRAINING)

    @override
    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.story.end(trainer, _TRAINING)

    @override
    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self.story.begin(trainer, _VALIDATION)

    @override
    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self.story.begin_epoch(trainer, _VALIDATION)

    @override
    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self.story.end_epoch(trainer, _VALIDATION)

    @override
    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self.story.end(trainer, _VALIDATION)

    @override
    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        self.story.begin(trainer, _TESTING)

    @override
    def on_test_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self.story.begin_epoch(trainer, _TESTING)

    @override
    def on_test_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self.story.end_epoch(trainer, _TESTING)

    @override
    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        self.story.end(trainer, _TESTING)

    @override
    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        self.story.begin(trainer, PREDICTION)

    @override
    def on_predict_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self.story.begin_epoch(trainer, PREDICTION)

    @override
    def on_predict_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self.story.end_epoch(trainer, PREDICTION)

    @override
    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        self.story.end(trainer, PREDICTION)

    @override
    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
        self.hear_save(trainer)

    @override
    def hear_save(self, trainer: Any) -> None:
        if self._is_wanted(trainer):
            self.story.saving(trainer)

    @override
    def hear_end_of_save(self, trainer: Any, *, failed: bool, later: Future[bool] | None) -> None:
        if self._is_wanted(trainer):
            self.story.ended_saving(trainer, failed=failed, later=later)

    @override
    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self.story.leave(trainer)

    @override
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.story.end_all(trainer)

    def _is_wanted(self, trainer: Any) -> bool:
        """Tell whether a Trainer still has the logger whose callback this is, and that records.

        A forked rank has what its parent knew: without the second it would tell the story too.
        """
        loggers = attribute(trainer, "loggers") or ()
        ours = [one for one in loggers if attribute(one, "lineage_callback") is self]
        return any(attribute(one, "records_here") for one in ours)


def _is_search(callback: Any) -> bool:
    """Tell whether a callback searches for settings; pytorch_lightning has classes of its own."""
    names = {kind.__name__ for kind in type(callback).__mro__}
    return not names.isdisjoint({"BatchSizeFinder", "LearningRateFinder"})
