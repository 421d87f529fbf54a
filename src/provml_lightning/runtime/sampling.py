"""A run's sampler: opened when it is first asked for, stopped when the run closes."""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import TYPE_CHECKING

from provml_lightning.domain.records import Note
from provml_lightning.errors import ProvMLError, SamplerDroppedWarning
from provml_lightning.runtime.faults import warn
from provml_lightning.runtime.ranks import local_rank, world_size
from provml_lightning.runtime.run import Run
from provml_lightning.samplers.interval import Cursor
from provml_lightning.samplers.machine import Share, open_machine
from provml_lightning.samplers.sampler import Sampler
from provml_lightning.samplers.system import energy_consumed, missing_metrics, system_values

if TYPE_CHECKING:
    from provml_lightning.runtime.active import AnyRun
    from provml_lightning.samplers.system import Value

__all__ = ["Sampling", "begin_sampling", "sampling_of"]

_TOPIC = "system metrics"
_FIRST_INTERVAL = 0.1  # the least that CPU time, counted in hundredths of a second, needs [s]


class Sampling:
    """The sampler of one run.

    Attributes:
        sampler: What reads.
    """

    def __init__(self, run: Run) -> None:
        """Open what this process is to measure, and start to.

        Raises:
            ConfigurationError: A variable of ours is not a number.
        """
        self._run = run
        opened = open_machine(run.directory, _share(run), os.environ)
        self.sampler = Sampler(opened.channels, on_drop=self._dropped, close=opened.close)
        self._cursor = Cursor(self.sampler)
        self._energy: Cursor | None = None
        self._due: float | None = time.monotonic() + _FIRST_INTERVAL
        for remark in opened.remarks:
            self._note(remark)
        if missing := missing_metrics(each.name for each in opened.channels):
            self._note(f"not measured: {', '.join(missing)}")
        run.contributors.add(self.sampler.stop, at_close=True)
        self.sampler.start()

    def system_values(self) -> list[Value]:
        """Return the system metrics since the last call.

        The first call waits until there is an interval to speak of, a tenth of a second.
        """
        self._await_first_interval()
        return system_values(self._cursor.advance())

    def energy_consumed(self) -> Value | None:
        """Return the energy since the last call of this kind [J]; None where it is not known."""
        if self._energy is None:
            self._energy = Cursor(self.sampler)
            self._note(
                "no emissions: this version knows no carbon intensity; energy_consumed is the"
                " energy that they would come from"
            )
        self._await_first_interval()
        return energy_consumed(self._energy.advance())

    def cursor(self) -> Cursor:
        """Return a place in the sampler's time for a caller of its own."""
        return Cursor(self.sampler)

    def _await_first_interval(self) -> None:
        if self._due is not None:
            time.sleep(max(self._due - time.monotonic(), 0.0))
            self._due = None

    def _dropped(self, channel: str, source: str, error: BaseException) -> None:
        message = f"{channel} ({source}) is not read any more: {error}"
        self._note(message)
        warn(message, SamplerDroppedWarning)

    def _note(self, message: str) -> None:
        try:
            self._run.record(Note(time=time.time_ns(), topic=_TOPIC, message=message))
        except ProvMLError as failure:  # the run ended meanwhile, or its disk is full
            warn(str(failure), SamplerDroppedWarning)


_SAMPLINGS: weakref.WeakKeyDictionary[Run, Sampling] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def sampling_of(run: AnyRun) -> Sampling | None:
    """Return a run's sampler, opened now if it was not; None for a process that measures nothing.

    Raises:
        ConfigurationError: A variable of ours is not a number.
    """
    if not isinstance(run, Run):
        return None
    found = _SAMPLINGS.get(run)
    if found is not None:
        return found
    if run.rank == 0 and not run.compiles:
        return None  # born by fork: what it would measure is its parent's to measure
    with _lock:
        if run not in _SAMPLINGS:
            _SAMPLINGS[run] = Sampling(run)
        return _SAMPLINGS[run]


def begin_sampling(run: AnyRun) -> None:
    """Open a run's sampler, so that its first interval begins now."""
    sampling_of(run)


def _share(run: Run) -> Share:
    """Return what this process measures.

    Where every rank records, each has its own GPU; where one does, it has all that it sees.
    """
    local = local_rank(run.rank)
    alone = not run.opened.attributes.get("collect_all_processes") or world_size() <= 1
    return Share(machine=local == 0, gpu=None if local == 0 and alone else local)


def _forget_lock() -> None:
    global _lock  # noqa: PLW0603  another thread of the parent may have held it at the fork
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)
