"""What the logger costs a fit of several epochs, each with a validation and a checkpoint."""

from __future__ import annotations

from functools import partial

from benchmarks.lightning_fit import NONE, OURS, column, fit, loggers
from benchmarks.measuring import Times, in_fresh_process, over
from benchmarks.rows import Row
from benchmarks.turns import compete

__all__ = ["measure"]

EPOCHS = 5


def measure(*, quick: bool) -> list[Row]:
    """Return the time of a whole fit [s] with all that the logger tells, against none."""
    rounds, steps = (1, 10) if quick else (10, 200)
    found = in_fresh_process(contend, rounds=rounds, steps=steps)
    return [
        Row(
            what=f"{OURS}, {EPOCHS} epochs of {steps} steps with checkpoints, whole fit, {clock}",
            measured=(measured := column(found[OURS], clock)),
            unit="s",
            against=NONE,
            ratios=over(measured, column(found[NONE], clock)),
            ratio_budget=1.02,
        )
        for clock in Times._fields
    ]


def contend(rounds: int, steps: int) -> dict[str, list[Times]]:
    """Fit with the logger and without one, fifty steps in turn; return the times of the whole."""
    contenders = {
        name: partial(fit, build, steps, epochs=EPOCHS)
        for name, build in loggers().items()
        if name in {OURS, NONE}
    }
    found = compete(contenders, rounds)
    return {name: [one.whole for one in workers] for name, workers in found.items()}
