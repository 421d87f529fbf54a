"""What a logger adds to one step of a Lightning fit, measured inside Lightning itself."""

from __future__ import annotations

import pkgutil
import time
from contextlib import ExitStack
from functools import wraps
from typing import TYPE_CHECKING, Any
from unittest import mock

from benchmarks.lightning_fit import IDLE, NONE, OURS, fit, loggers
from benchmarks.measuring import in_fresh_process
from benchmarks.rows import Row
from benchmarks.turns import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["measure"]

# Where Lightning 2.6 calls its loggers, and its callbacks, of which this logger adds one.
LIGHTNING = "lightning.pytorch.trainer"
PLACES = (
    f"{LIGHTNING}.connectors.logger_connector.logger_connector._LoggerConnector.log_metrics",
    f"{LIGHTNING}.call._call_callback_hooks",
)


def measure(*, quick: bool) -> list[Row]:
    """Return the time inside Lightning's calls of loggers and callbacks, a step [µs].

    With so little between two looks at the clock it is known much better than as the difference
    of two fits; what it leaves out is what a logger does to the processor's caches.
    """
    rounds, steps = (1, 20) if quick else (8, 300)
    found = in_fresh_process(contend, rounds=rounds, steps=steps)
    return [
        Row(
            what=f"{name}, added to a step, wall",
            measured=(added := [own - no for (own, _), (no, _) in pairs]),
            unit="µs",
            against="the step without a logger",
            ratios=[1 + more / step for more, (_, (_, step)) in zip(added, pairs, strict=True)],
            ratio_budget=1.02 if name == OURS else None,
        )
        for name in (OURS, IDLE)
        if (pairs := list(zip(found[name], found[NONE], strict=True)))
    ]


def contend(rounds: int, steps: int) -> dict[str, list[tuple[float, float]]]:
    """Fit in turn, after one round that does not count; return time inside and of all [µs/step]."""
    names = [OURS, NONE, IDLE]
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for turn in range(-1, rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(_timed_fit(name, steps))
    return {name: times[1:] for name, times in found.items()}


def _timed_fit(name: str, steps: int) -> tuple[float, float]:
    inside: list[float] = []
    worker = Worker(name)
    with ExitStack() as stack:
        for place in PLACES:
            module, _, function = place.rpartition(".")
            owner = pkgutil.resolve_name(module)
            timed = _timed(getattr(owner, function), worker, inside)
            stack.enter_context(mock.patch.object(owner, function, timed))
        fit(loggers()[name], steps, worker)
    return sum(inside) / steps * 1e6, worker.loop.wall / steps * 1e6


def _timed(function: Callable[..., Any], worker: Worker, spent: list[float]) -> Callable[..., Any]:
    """Return a function that does the same, and notes how long it took in the loop [s]."""

    @wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            if worker.is_in_loop:
                spent.append(time.perf_counter() - start)

    return timed
