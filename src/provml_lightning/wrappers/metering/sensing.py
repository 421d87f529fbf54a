"""This process's sensors, which are read while something is measured and not a moment longer."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from provml_lightning.errors import SamplerDroppedWarning
from provml_lightning.runtime.faults import warn
from provml_lightning.runtime.ranks import global_rank
from provml_lightning.runtime.sampling import share_of
from provml_lightning.samplers.interval import Interval
from provml_lightning.samplers.machine import Share, open_machine
from provml_lightning.samplers.rapl import open_cores
from provml_lightning.samplers.sampler import Sampler, Snapshot
from provml_lightning.wrappers.metering.energies import NEEDED, Energies, energies_of

if TYPE_CHECKING:
    from provml_lightning.samplers.base import Channel

__all__ = ["Begun", "Sensors", "sensors_of"]


class Begun(NamedTuple):
    """The beginning of a measure: the sampler that reads, and what was known then."""

    sampler: Sampler
    known: Snapshot


class Sensors:
    """The sensors behind every measure of this process; opened once, at the first.

    Each time in which at least one measure is under way has a sampler of its own over the same
    channels, so that its thread ends with the last measure and the next need not open anything.

    Args:
        powercap: The folder in which the CPUs' counters are; empty for the machine's own.
    """

    def __init__(self, powercap: str = "") -> None:
        self._powercap = powercap
        self._lock = threading.RLock()  # a signal's handler may measure in the midst of a measure
        self._channels: tuple[Channel, ...] | None = None
        self._machine = True
        self._sampler: Sampler | None = None
        self._watching = 0

    def begin(self) -> Begun:
        """Return where a measure begins: now.

        Raises:
            ConfigurationError: A variable of ours is not a number.
        """
        with self._lock:
            self._watching += 1
            try:
                sampler = self._running()
                return Begun(sampler, sampler.poll())
            except BaseException:
                self._leave()
                raise

    def end(self, begun: Begun) -> Energies:
        """Return what was used since a beginning; with the last measure the thread ends.

        What could not be read at the beginning is not known.
        """
        try:
            known = begun.known
            interval = Interval(known.totals, known, begun.sampler.poll())
        finally:
            self._leave()
        return energies_of(interval, os.cpu_count() or 1, machine=self._machine)

    def _running(self) -> Sampler:
        if self._channels is None:
            self._channels = self._opened()
        if self._sampler is None:
            made = Sampler(self._channels, on_drop=self._drop)
            if self._sampler is None:  # else a signal's handler was quicker
                self._sampler = made
                made.start()
        return self._sampler

    def _leave(self) -> None:
        with self._lock:
            self._watching -= 1
            if self._watching == 0:
                # Within the lock: two samplers must never read one channel.
                sampler, self._sampler = self._sampler, None
                if sampler is not None:
                    sampler.stop()

    def _opened(self) -> tuple[Channel, ...]:
        share = share_of(global_rank(), together=True)
        self._machine = share.machine
        environ = dict(os.environ)
        if self._powercap:
            environ["PROVML_POWERCAP"] = self._powercap
        # A process's share is one of the whole machine, whichever rank tells of the machine.
        opened = open_machine(Path(), Share(gpu=share.gpu), environ)
        cores = open_cores(environ)
        return tuple(each for each in (*opened.channels, *cores.channels) if each.name in NEEDED)

    def _drop(self, channel: str, source: str, error: BaseException) -> None:
        self._channels = tuple(each for each in self._channels or () if each.name != channel)
        warn(f"{channel} ({source}) is not read any more: {error}", SamplerDroppedWarning)


_SENSORS: dict[str, Sensors] = {}


def sensors_of(powercap: str = "") -> Sensors:
    """Return this process's sensors; a process born by fork opens its own."""
    return _SENSORS.get(powercap) or _SENSORS.setdefault(powercap, Sensors(powercap))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_SENSORS.clear)
