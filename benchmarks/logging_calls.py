"""The cost of ``log_metric``: each value is safe from the death of the process on return."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.losses import NAMES
from benchmarks.measuring import Times, in_fresh_process, interleave, over, timed
from benchmarks.rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["measure"]

BUDGET = 1.5  # [µs]

OURS = "log_metric"
LISTS = "append to a dict of lists"
CSV = "write to an open CSV file"
FLUSHED = "the same, flushed each time"


def measure(*, quick: bool) -> list[Row]:
    """Return the cost of a call, on the wall and of the CPU [µs], against three baselines."""
    processes, rounds, calls = (1, 2, 10_000) if quick else (3, 5, 100_000)
    found: dict[str, list[Times]] = {}
    for _ in range(processes):
        spent = in_fresh_process(contend, calls=calls, rounds=rounds)
        for name, times in spent.items():
            found.setdefault(name, []).extend(Times(*each) for each in times)
    return [
        Row(
            what=f"{OURS}, {calls} calls over {len(NAMES)} names, {clock}",
            measured=[each * 1e6 / calls for each in _by(clock, found[OURS])],
            unit="µs",
            budget=BUDGET,
            against=against,
            ratios=over(_by(clock, found[OURS]), _by(clock, found[against])),
        )
        for against in (LISTS, CSV, FLUSHED)
        for clock in Times._fields
    ]


def _by(clock: str, times: list[Times]) -> list[float]:
    return [getattr(each, clock) for each in times]


def contend(calls: int, rounds: int) -> dict[str, list[Times]]:
    """Make all contenders log the same values, in turn, in this process."""
    import prov4ml

    with ExitStack() as files:
        prov4ml.start_run("bench")
        plain, flushed = (
            {name: files.enter_context(Path(f"{name}{kind}.csv").open("w")) for name in NAMES}
            for kind in ("", "-flushed")
        )
        lists: dict[str, list[tuple[int, int, float]]] = {name: [] for name in NAMES}

        def append(name: str, value: float, _: str, step: int) -> None:
            lists[name].append((step, time.time_ns(), value))

        def write(name: str, value: float, _: str, step: int) -> None:
            plain[name].write(f"{step},{time.time_ns()},{value}\n")

        def write_through(name: str, value: float, _: str, step: int) -> None:
            flushed[name].write(f"{step},{time.time_ns()},{value}\n")
            flushed[name].flush()

        found = interleave(
            {
                OURS: lambda: timed(lambda: _log(prov4ml.log_metric, calls)),
                LISTS: lambda: timed(lambda: _log(append, calls)),
                CSV: lambda: timed(lambda: _log(write, calls)),
                FLUSHED: lambda: timed(lambda: _log(write_through, calls)),
            },
            rounds,
        )
        prov4ml.end_run()
    return found


def _log(call: Callable[[str, float, str, int], None], calls: int) -> None:
    for step in range(calls // len(NAMES)):
        for name in NAMES:
            call(name, 0.5, "Training", step)
