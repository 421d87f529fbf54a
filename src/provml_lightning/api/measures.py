"""Measure something now and keep it as a metric of the current run."""

from __future__ import annotations

import time

from provml_lightning.runtime.active import innermost
from provml_lightning.runtime.run import Run

__all__ = ["log_current_execution_time"]


def log_current_execution_time(
    label: str, context: str | None = None, step: int | None = None
) -> None:
    """Keep the time since the run began, as a metric [s].

    Args:
        label: The metric's name, any text.
        context: What it belongs to; None for the run itself.
        step: Whole number, or None [1].

    Raises:
        NoActiveRunError: No run is open.

    Source:
        The system clock, at the call and when the run opened.
    """
    run = innermost()
    if isinstance(run, Run):
        now = time.time_ns()
        seconds = (now - run.opened.time) / 1e9
        run.record_metric(label, seconds, context, step, "time", time=now, unit="s")
