"""The run that standalone calls go to, and the calls that wait for one.

It is the run that was opened last and is still open, for the whole process and all its threads.
"""

from __future__ import annotations

import atexit
import importlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakSet

from provml_lightning.domain.records import Status
from provml_lightning.errors import NoActiveRunError, ProvMLError, RecordDroppedWarning
from provml_lightning.runtime.faults import warn
from provml_lightning.runtime.outcome import outcome_of
from provml_lightning.runtime.run import Run
from provml_lightning.runtime.silent import SilentRun

__all__ = [
    "BUSY_RUNS",
    "OPEN_RUNS",
    "AnyRun",
    "aimed_at",
    "current",
    "deliver",
    "enclosing",
    "enter",
    "innermost",
    "leave",
]

AnyRun = Run | SilentRun
Call = Callable[[AnyRun], None]

_MOST_WAITING = 100_000


# The innermost last; one list for ever, so that a caller in a hurry may keep it.
OPEN_RUNS: list[AnyRun] = []
# Those whose training has begun and not ended; at an exit they are cut off.
BUSY_RUNS: WeakSet[AnyRun] = WeakSet()


class _Runs:
    """The open runs, the innermost last, and what waits for the first one."""

    def __init__(self) -> None:
        self.open = OPEN_RUNS
        self.enclosing: list[AnyRun] = []
        self.waiting: deque[Call] = deque()
        self.dropped = 0
        self.lock = threading.RLock()
        self.watched = False
        self.follows_forks = False

    def watch_exit(self) -> None:
        """Close at the interpreter's exit what nobody closed; import alone registers nothing."""
        if self.watched:
            return
        self.watched = True
        # pyarrow imports pandas when it reads, and that this: which fails once Python exits.
        importlib.import_module("concurrent.futures.thread")
        atexit.register(self.at_exit)
        _at_exit_of_worker(self.at_exit)
        if not self.follows_forks and hasattr(os, "register_at_fork"):
            self.follows_forks = True
            os.register_at_fork(after_in_child=self.become_child)

    def become_child(self) -> None:
        """In a process born by fork: what waits is the parent's, and its files too."""
        self.lock = threading.RLock()
        self.waiting.clear()
        self.dropped = 0
        self.watched = False
        for run in self.open:
            run.become_child()

    def at_exit(self) -> None:
        """Close every open run, the innermost first; failures are warnings, for this is an exit."""
        error = _uncaught()
        while (run := current()) is not None:
            leave(run)
            cut_off = error is None and run in BUSY_RUNS
            try:
                run.close(Status.INTERRUPTED if cut_off else outcome_of(error), error)
            except ProvMLError as failure:
                warn(str(failure))
            except RuntimeError as failure:  # zarr 3 needs threads, which Python has none of now
                warn(_unwritten(run, failure))
        lost = len(self.waiting) + self.dropped
        self.waiting.clear()
        self.dropped = 0
        if lost:
            warn(
                f"{lost} log calls were dropped: no run was opened for them. Call"
                " prov4ml.start_run() before, or pass ProvMLLogger() to the Trainer",
                RecordDroppedWarning,
            )


def _unwritten(run: AnyRun, failure: RuntimeError) -> str:
    folder = getattr(run, "directory", "the run")
    return (
        f"{folder}: its documents were not written while Python exits ({failure}). Everything that"
        f" was logged is in its journal folder: call 'prov4ml recover {folder}', and end_run() the"
        " next time"
    )


class _Aim(threading.local):
    """The run that this thread's calls are for, where somebody says so."""

    run: AnyRun | None = None


_RUNS = _Runs()
_aim = _Aim()


def current() -> AnyRun | None:
    """Return the run that calls go to, or None where none is open."""
    if _aim.run is not None:
        return _aim.run
    runs = _RUNS.open
    return runs[-1] if runs else None


@contextmanager
def aimed_at(run: AnyRun) -> Iterator[None]:
    """Let the calls that this thread makes in the block go to a run, whichever was opened last."""
    before, _aim.run = _aim.run, run
    try:
        yield
    finally:
        _aim.run = before


def enclosing() -> AnyRun | None:
    """Return the open run that a new one is opened inside of, or None where there is none."""
    runs = _RUNS.enclosing
    return runs[-1] if runs else None


def innermost() -> AnyRun:
    """Return the run that was opened last and is still open.

    Raises:
        NoActiveRunError: There is none.
    """
    run = current()
    if run is None:
        raise NoActiveRunError("no run is open; call start_run() first, or pass ProvMLLogger()")
    return run


def enter(run: AnyRun, *, encloses: bool = True) -> None:
    """Make a run the one that calls go to; the calls that waited go to it, in order.

    Args:
        run: The run.
        encloses: Runs that are opened while it is open are inside it.
    """
    with _RUNS.lock:
        _RUNS.watch_exit()
        run.contributors.add(lambda: leave(run), at_close=True)
        _RUNS.open.append(run)
        if encloses:
            _RUNS.enclosing.append(run)
        while _RUNS.waiting:
            try:
                _RUNS.waiting.popleft()(run)
            except ProvMLError as failure:  # the caller is long gone, and the run is not to blame
                run.excuse("waiting call", failure)


def leave(run: AnyRun) -> None:
    """Let calls go to the run that was opened before this one."""
    with _RUNS.lock:
        for runs in (_RUNS.open, _RUNS.enclosing):
            if run in runs:
                runs.remove(run)


def deliver(call: Call) -> None:
    """Make a call on the current run; where none is open it waits for the first that opens."""
    with _RUNS.lock:
        run = current()
        if run is None:
            _RUNS.watch_exit()
            _RUNS.waiting.append(call)
            if len(_RUNS.waiting) > _MOST_WAITING:
                _RUNS.waiting.popleft()
                _RUNS.dropped += 1
    if run is not None:
        call(run)


def _uncaught() -> BaseException | None:
    """Return the exception that ends the interpreter, if one does.

    Source:
        ``sys.last_value`` is set when a script's exception is printed; at a prompt it is stale.
        In a worker of torch's ``spawn`` a SystemExit is on its way, born of the true one.
    """
    error = sys.exc_info()[1]
    while isinstance(error, SystemExit) and error.code and error.__context__ is not None:
        error = error.__context__
    if error is not None or hasattr(sys, "ps1"):
        return error
    return getattr(sys, "last_value", None)


def _at_exit_of_worker(call: Callable[[], None]) -> None:
    """Make a call at the end of a process that multiprocessing began.

    Source:
        There ``atexit`` comes too late to see the exception, and with fork not at all
        (CPython 3.11, ``multiprocessing.process.BaseProcess._bootstrap``).
    """
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, call, exitpriority=0)
