"""What the monitors cost a Lightning fit, every step and every epoch."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.lightning_fit import column, fit
from benchmarks.measuring import Times, in_fresh_process, interleave, over
from benchmarks.rows import Row
from benchmarks.turns import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["measure"]

ALONE = "ProvMLLogger alone"
EPOCHS = "all three, every epoch"


def measure(*, quick: bool) -> list[Row]:
    """Return the time of a fit's loop [s] with monitors, against the logger alone."""
    rounds, steps = (1, 20) if quick else (6, 300)
    found = in_fresh_process(contend, rounds=rounds, steps=steps)
    return [
        Row(
            what=f"{name}, {steps} steps, loop, {clock}",
            measured=(measured := column(found[name], clock)),
            unit="s",
            against=ALONE,
            ratios=over(measured, column(found[ALONE], clock)),
            ratio_budget=1.02 if name == EPOCHS else None,
        )
        for name in found
        if name != ALONE
        for clock in Times._fields
    ]


def contend(rounds: int, steps: int) -> dict[str, list[Times]]:
    """Fit with each choice of monitors in turn; return the times of the loop."""
    from provml_lightning import ProvMLLogger

    def contender(name: str, callbacks: Callable[[], list[Any]]) -> Callable[[], Times]:
        build = partial(ProvMLLogger, save_dir="ours", carbon_intensity=300.0)

        def fitted() -> Times:
            worker = Worker(name)
            fit(build, steps, worker, callbacks())
            return worker.loop

        return fitted

    return interleave({name: contender(name, made) for name, made in _choices().items()}, rounds)


def _choices() -> dict[str, Callable[[], list[Any]]]:
    from provml_lightning import CarbonMonitor, FlopsMonitor, SystemMonitor

    three = (SystemMonitor, CarbonMonitor, FlopsMonitor)
    return {
        ALONE: list,
        EPOCHS: lambda: [kind() for kind in three],
        **{f"{kind.__name__}, every step": partial(_one, kind) for kind in three},
    }


def _one(kind: Any) -> list[Any]:
    return [kind(every="step")]
