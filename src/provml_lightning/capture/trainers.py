"""What a Trainer of Lightning's counts; nothing is imported for it."""

from __future__ import annotations

from typing import Any

__all__ = ["logged_step", "step_of_epoch"]


def logged_step(trainer: Any) -> int:
    """Return the batches after which the optimiser stepped, which is what loggers get as step [1].

    Source:
        Lightning's own monitors read it there; nothing public tells it (lightning 2.6.6).
    """
    steps: int = getattr(trainer.fit_loop.epoch_loop, "_batches_that_stepped", trainer.global_step)
    return steps


def step_of_epoch(trainer: Any) -> int:
    """Return the step of an epoch of training that has just ended: that of its last batch [1].

    Source:
        Lightning logs the epoch's own metrics there, by counting one back for that moment.
    """
    return max(0, logged_step(trainer) - 1)
