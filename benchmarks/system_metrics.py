"""The cost of ``log_system_metrics``, and of the thread that reads in the background."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.measuring import Times, in_fresh_process, interleave, over, timed
from benchmarks.rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["measure"]

CALL_BUDGET = 300.0  # [µs]
POLL_BUDGET = 50.0  # [µs]
SHARE_BUDGET = 0.1  # [% of a core]

OURS = "log_system_metrics"
POLL = "poll of the sampler"
PSUTIL = "psutil's cpu_percent, virtual_memory, disk_usage"


def measure(*, quick: bool) -> list[Row]:
    """Return the cost of a call and of a poll [µs], and of the thread [% of a core]."""
    processes, rounds, calls = (1, 2, 100) if quick else (3, 5, 2000)
    found: dict[str, list[Times]] = {}
    shares: list[float] = []
    for _ in range(processes):
        spent, share = in_fresh_process(contend, calls=calls, rounds=rounds)
        shares += share
        for name, times in spent.items():
            found.setdefault(name, []).extend(Times(*each) for each in times)
    rows = [
        Row(
            what=f"{name}, {calls} calls, {clock}",
            measured=[each * 1e6 / calls for each in _by(clock, found[name])],
            unit="µs",
            budget=budget,
            against=PSUTIL,
            ratios=over(_by(clock, found[name]), _by(clock, found[PSUTIL])),
        )
        for name, budget in ((OURS, CALL_BUDGET), (POLL, POLL_BUDGET))
        for clock in Times._fields
    ]
    thread = Row(what="sampler's thread, a core", measured=shares, unit="%", budget=SHARE_BUDGET)
    return [*rows, thread]


def _by(clock: str, times: list[Times]) -> list[float]:
    return [getattr(each, clock) for each in times]


def contend(calls: int, rounds: int) -> tuple[dict[str, list[Times]], list[float]]:
    """Measure calls, polls and psutil in turn; then what one tick of the thread costs."""
    import psutil

    import prov4ml
    from provml_lightning.runtime.sampling import sampling_of

    run = prov4ml.start_run("bench")
    sampling = sampling_of(run)
    if sampling is None:
        raise RuntimeError("this process is a rank that does not record")
    prov4ml.log_system_metrics()

    def ask() -> None:
        psutil.cpu_percent()
        psutil.virtual_memory()
        psutil.disk_usage("/")

    sampler = sampling.sampler
    actions: dict[str, Callable[[], object]] = {
        OURS: lambda: prov4ml.log_system_metrics("Training", 1),
        POLL: sampler.poll,
        PSUTIL: ask,
    }

    def contender(action: Callable[[], object]) -> Callable[[], Times]:
        return lambda: timed(lambda: [action() for _ in range(calls)])

    found = interleave({name: contender(action) for name, action in actions.items()}, rounds)
    ticks = []
    for _ in range(20 * rounds):
        began = time.thread_time()
        sampler.tick()
        ticks.append(100 * (time.thread_time() - began) / sampler.period)
    prov4ml.end_run()
    return found, ticks
