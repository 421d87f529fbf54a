"""A training that is killed at any moment, and what had been acknowledged to it by then.

The child writes into a mapped file what each call had returned for; the page cache outlives it, so
the parent can compare exactly.
"""

from __future__ import annotations

import itertools
import mmap
import multiprocessing
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.records import Parameter, Status
from provml_lightning.domain.settings import RunSettings
from provml_lightning.runtime.opening import open_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.process import BaseProcess
    from pathlib import Path

    from provml_lightning.runtime.run import Run

__all__ = [
    "CONTEXTS",
    "METRICS",
    "PHASES",
    "Acknowledged",
    "live",
    "live_step_by_step",
    "start",
    "value",
]

PHASES = ("starting", "opening", "logging", "snapshot", "between", "pause", "closing", "closed")
METRICS = ("loss", "Loss", "a/b: ü")
CONTEXTS = ("Training", None, "my context")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Acknowledged:
    """Counters in a file that both processes map: phase, facts, values of each metric."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(8 * (2 + len(METRICS))))
        with path.open("r+b") as file:
            # One store a counter: struct.pack_into writes zeros first (CPython 3.11), which a kill
            # may leave there.
            self._counters = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")

    def __getitem__(self, slot: int) -> int:
        return self._counters[slot]

    def __setitem__(self, slot: int, count: int) -> None:
        self._counters[slot] = count

    @property
    def phase(self) -> int:
        return self[0]

    def enter(self, phase: str) -> None:
        self[0] = PHASES.index(phase)

    @property
    def facts(self) -> int:
        return self[1]

    @property
    def values(self) -> list[int]:
        return [self[2 + metric] for metric in range(len(METRICS))]


def value(metric: int, step: int) -> float:
    """Return what the metric has at a step; no two values of a run are the same."""
    return metric * 1e9 + step + 0.25


def start(target: Any, *arguments: Any) -> BaseProcess:
    """Start a process from a server that has imported everything: a birth costs milliseconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pandas", "pyarrow.parquet", "pyarrow.compute", __name__])
    process = context.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def live(project: Path, acknowledged: Path) -> None:
    """Train with three threads that log and one that tells facts, through all phases of a run."""
    told = Acknowledged(acknowledged)
    told.enter("opening")
    run = _open(project)
    told.enter("logging")
    stop = threading.Event()
    threads = [
        threading.Thread(target=_log, args=(run, told, metric, stop), daemon=True)
        for metric in range(len(METRICS))
    ]
    for thread in threads:
        thread.start()
    facts = _facts(run, told)
    _tell(facts, 30)
    told.enter("snapshot")
    run.snapshot()
    told.enter("between")
    _tell(facts, 20)
    told.enter("pause")
    run.snapshot(Status.COMPLETED)
    _tell(facts, 10)
    told.enter("closing")
    stop.set()
    for thread in threads:
        thread.join()
    run.close()
    told.enter("closed")
    time.sleep(60)


def live_step_by_step(project: Path, acknowledged: Path, die_at: int) -> None:
    """Live a short life and die before the file operation of this number; exit 0 if it has none."""
    told = Acknowledged(acknowledged)
    _die_before(die_at)
    told.enter("opening")
    run = _open(project)
    told.enter("logging")
    facts = _facts(run, told)
    for _ in range(2):
        for metric in range(len(METRICS)):
            for _ in range(20):
                _log_one(run, told, metric)
        _tell(facts, 2, pause=0)
        run.snapshot()
    run.snapshot(Status.COMPLETED)
    _log_one(run, told, 0)
    told.enter("closing")
    run.close()
    told.enter("closed")


def _open(project: Path) -> Run:
    settings = RunSettings(experiment_name="doomed", provenance_save_dir=project)
    return open_run(settings)  # type: ignore[return-value]


def _log(run: Run, told: Acknowledged, metric: int, stop: threading.Event) -> None:
    for count in itertools.count():
        if stop.is_set():
            return
        _log_one(run, told, metric)
        if count % 50 == 0:
            time.sleep(0.001)


def _log_one(run: Run, told: Acknowledged, metric: int) -> None:
    step = told[2 + metric]
    run.record_metric(METRICS[metric], value(metric, step), CONTEXTS[metric], step)
    told[2 + metric] = step + 1


def _facts(run: Run, told: Acknowledged) -> Iterator[None]:
    for number in itertools.count():
        run.record(Parameter(time=time.time_ns(), key=f"p{number}", value=number))
        told[1] = number + 1
        yield


def _tell(facts: Iterator[None], count: int, pause: float = 0.002) -> None:
    for _ in range(count):
        next(facts)
        time.sleep(pause)


def _die_before(number: int) -> None:
    """Kill this process before the file operation of this number, whatever makes it."""
    left = itertools.count(number, -1)

    def maybe() -> None:
        if next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def audited(event: str, arguments: tuple[Any, ...]) -> None:
        opens = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
        if opens or event in ("os.mkdir", "os.rename", "os.remove", "mmap.__new__"):
            maybe()

    def counted(operation: Any) -> Any:
        def call(*arguments: Any) -> Any:
            maybe()
            return operation(*arguments)

        return call

    sys.addaudithook(audited)
    for name in ("write", "pwrite", "fsync", "posix_fallocate", "ftruncate"):
        setattr(os, name, counted(getattr(os, name)))
