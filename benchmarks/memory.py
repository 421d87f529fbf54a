"""How much memory a run takes, while values are logged and at its end."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self

from benchmarks.losses import losses
from benchmarks.measuring import in_fresh_process, over
from benchmarks.rows import Row

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["measure"]

BUDGET = 50.0  # [MB]
PERIOD = 0.01  # [s]


def measure(*, quick: bool) -> list[Row]:
    """Return the most memory above what the process had before [MB].

    The baseline has every library loaded: a run of 1000 points was made and ended before.
    ``anonymous`` is memory proper; ``resident`` adds the pages of mapped files, which the kernel
    may take back at any time.
    """
    rounds, points = (1, 100_000) if quick else (2, 10_000_000)
    found = [in_fresh_process(peaks, points=points) for _ in range(rounds)]
    return [
        Row(
            what=f"memory above the baseline, {points} points, {when}, {kind}",
            measured=(measured := [each[when][kind] for each in found]),
            unit="MB",
            budget=BUDGET,
            against="the baseline",
            ratios=over(measured, [each["baseline"][kind] for each in found]),
        )
        for when in ("logging", "ending")
        for kind in ("anonymous", "resident")
    ] + [
        Row(
            what="memory that the libraries take which the first end_run loads, anonymous",
            measured=[each["libraries"]["anonymous"] for each in found],
            unit="MB",
        )
    ]


def peaks(points: int) -> dict[str, dict[str, float]]:
    """Return the memory of the baseline and the peaks above it [MB]."""
    import prov4ml

    empty = _memory()
    with prov4ml.start_run("small"):
        _log(1_000)
    gc.collect()
    baseline = _memory()
    prov4ml.start_run("large")
    with _Peak() as logging:
        _log(points)
    with _Peak() as ending:
        prov4ml.end_run()
    return {
        "libraries": _above(baseline, empty),
        "baseline": baseline,
        "logging": _above(logging.most, baseline),
        "ending": _above(ending.most, baseline),
    }


def _log(points: int) -> None:
    import prov4ml

    for name, value, step, _ in losses(points):
        prov4ml.log_metric(name, value, "Training", step)


class _Peak:
    """Looks at the memory of this process a hundred times a second and keeps the most."""

    def __init__(self) -> None:
        self.most = _memory()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(PERIOD):
            self.most = {kind: max(most, _memory()[kind]) for kind, most in self.most.items()}


def _above(memory: dict[str, float], base: dict[str, float]) -> dict[str, float]:
    return {kind: amount - base[kind] for kind, amount in memory.items()}


def _memory() -> dict[str, float]:
    """Return this process's memory [MB].

    Source:
        ``/proc/self/status`` of Linux, in kB.
    """
    lines = (line.split() for line in Path("/proc/self/status").read_text("utf-8").splitlines())
    sizes = {line[0]: int(line[1]) / 1000 for line in lines if line[-1] == "kB"}
    return {"anonymous": sizes["RssAnon:"], "resident": sizes["VmRSS:"]}
