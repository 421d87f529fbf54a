"""A sampler for whoever measures: opened when it is first asked for, stopped with its run."""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import TYPE_CHECKING

from provml_lightning.domain.carbon import Electricity
from provml_lightning.domain.catalogue import OF_SYSTEM
from provml_lightning.domain.records import Measured, Note
from provml_lightning.errors import (
    ConfigurationError,
    ProvMLError,
    RecordDroppedWarning,
    SamplerDroppedWarning,
)
from provml_lightning.runtime.faults import warn
from provml_lightning.runtime.ranks import local_rank, world_size
from provml_lightning.runtime.run import Run
from provml_lightning.samplers.carbon import ENERGIES, carbon_values
from provml_lightning.samplers.interval import Cursor
from provml_lightning.samplers.machine import Share, open_machine
from provml_lightning.samplers.sampler import Sampler
from provml_lightning.samplers.system import missing_metrics, system_values

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from provml_lightning.domain.records import Record
    from provml_lightning.runtime.active import AnyRun
    from provml_lightning.samplers.system import Value

__all__ = ["Sampling", "begin_sampling", "sampling_of", "share_of"]

_FIRST_INTERVAL = 0.1  # the least that CPU time, counted in hundredths of a second, needs [s]


class Sampling:
    """A sampler, with the places of those that ask it.

    Attributes:
        sampler: What reads.
        electricity: What its energy comes from.
        system: Up to where :meth:`system_values` has told.
        carbon: Up to where :meth:`carbon_values` has told.
    """

    def __init__(
        self,
        folder: Path,
        share: Share = Share(),  # noqa: B008  it is frozen
        electricity: Electricity = Electricity(),  # noqa: B008  and so is this
        note: Callable[[str], None] = lambda _: None,
        silent: Callable[[], None] | None = None,
    ) -> None:
        """Open what this process is to measure, and start to.

        Args:
            folder: The disk is the one that it lies on.
            share: What of the machine this process measures.
            electricity: What its energy comes from.
            note: Told what a reader must know, such as what cannot be measured.
            silent: Called once where emissions are asked for and the electricity's are not known.

        Raises:
            ConfigurationError: A variable of ours is not a number.
        """
        opened = open_machine(folder, share, os.environ)
        self.electricity = electricity
        self._since = time.time_ns()
        self._hardware = dict(opened.hardware)
        self._note = note
        self._silent = silent if electricity.intensity is None else None
        self.sampler = Sampler(opened.channels, on_drop=self._dropped, close=opened.close)
        self.system = Cursor(self.sampler)
        self.carbon = Cursor(self.sampler)
        self._turns = 0
        self._due: float | None = time.monotonic() + _FIRST_INTERVAL
        for remark in opened.remarks:
            note(remark)
        if missing := missing_metrics(each.name for each in opened.channels):
            note(f"not measured: {', '.join(missing)}")
        self.sampler.start()

    def system_values(self) -> list[Value]:
        """Return the system metrics since the last call.

        The first call waits until there is an interval to speak of, a tenth of a second.
        """
        self._await_first_interval()
        return system_values(self.system.advance())

    def carbon_values(self) -> list[Value]:
        """Return energies, and emissions where the electricity's are known, since the last call.

        Raises:
            ProvMLError: What ``silent`` raises.
        """
        self.tell_of_emissions()
        self._await_first_interval()
        return carbon_values(self.carbon.advance(), self.electricity)

    def tell_of_emissions(self) -> None:
        """Say once, where emissions cannot be told, that they cannot.

        Raises:
            ProvMLError: What ``silent`` raises.
        """
        if self._silent is not None:
            self._silent()
            self._silent = None

    def measured(self) -> Measured:
        """Return what was seen since the start, of energy and emissions."""
        seen = Cursor(self.sampler).advance()
        amounts = {name: value for name in ENERGIES if (value := seen.amount(name)) is not None}
        factor = self.electricity.grams_per_joule
        return Measured(
            time=time.time_ns(),
            since=self._since,
            energies={_device(name): value for name, value in amounts.items()},
            sources={_device(name): seen.source(name) for name in amounts},
            hardware=self._hardware,
            electricity=self.electricity.facts(),
            emissions=None if factor is None or not amounts else factor * sum(amounts.values()),
        )

    def news(self) -> Measured | None:
        """Return what was seen, if somebody has asked since the last news.

        A run stays open until its process ends, and whatever else that does after the training.
        """
        turns = self.system.turns + self.carbon.turns
        if turns == self._turns:
            return None
        self._turns = turns
        return self.measured()

    def stop(self) -> None:
        """Stop the thread and let go of the sensors; a second call does nothing."""
        self.sampler.stop()

    def _await_first_interval(self) -> None:
        if self._due is not None:
            time.sleep(max(self._due - time.monotonic(), 0.0))
            self._due = None

    def _dropped(self, channel: str, source: str, error: BaseException) -> None:
        message = f"{channel} ({source}) is not read any more: {error}"
        self._note(message)
        warn(message, SamplerDroppedWarning)


_SAMPLINGS: weakref.WeakKeyDictionary[Run, Sampling] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def sampling_of(run: AnyRun) -> Sampling | None:
    """Return a run's sampler, opened now if it was not; None for a process that measures nothing.

    Raises:
        ConfigurationError: A variable of ours is not a number.
    """
    if not isinstance(run, Run) or run.is_forked:
        return None  # what a process born by fork would measure is its parent's to measure
    found = _SAMPLINGS.get(run)
    if found is not None:
        return found
    with _lock:
        if run not in _SAMPLINGS:
            _SAMPLINGS[run] = _opened(run)
        return _SAMPLINGS[run]


def begin_sampling(run: AnyRun) -> None:
    """Open a run's sampler, so that its first interval begins now."""
    sampling_of(run)


def _opened(run: Run) -> Sampling:
    told = weakref.ref(run)  # the dictionary of samplings must not keep a run alive

    def note(message: str) -> None:
        if (run := told()) is not None:
            _note(run, message)

    def silent() -> None:
        if (run := told()) is not None:
            _tell_no_emissions(run)

    facts = run.opened.attributes
    electricity = Electricity() if facts.get("disable_codecarbon") else Electricity.of(facts)
    sampling = Sampling(run.directory, _share(run), electricity, note, silent)
    # Told now too: of a process that is killed, its hardware, and from when on its values are.
    _record(run, sampling.measured())
    run.contributors.add(lambda: _mention(run, sampling.news()))
    run.contributors.add(sampling.stop, at_close=True)
    return sampling


def _tell_no_emissions(run: Run) -> None:
    """Say once why there are no emissions.

    Raises:
        ConfigurationError: They are disabled, and the run is strict.
    """
    if run.opened.attributes.get("disable_codecarbon"):
        told = "no emissions: disable_codecarbon=True; the energies are kept"
        run.excuse(OF_SYSTEM, ConfigurationError(told))
        return
    told = (
        "no emissions: where the electricity comes from was not told; the energies are kept. Give"
        " country= or carbon_intensity= [gCO2eq/kWh], or set PROVML_COUNTRY"
    )
    _note(run, told)
    warn(told, RecordDroppedWarning)


def _device(channel: str) -> str:
    return channel.partition(".")[0]


def _note(run: Run, message: str) -> None:
    _record(run, Note(time=time.time_ns(), topic=OF_SYSTEM, message=message))


def _mention(run: Run, news: Measured | None) -> None:
    if news is not None:
        run.mention(news)


def _record(run: Run, record: Record) -> None:
    try:
        run.record(record)
    except ProvMLError as failure:  # the run ended meanwhile, or its disk is full
        warn(str(failure), SamplerDroppedWarning)


def _share(run: Run) -> Share:
    return share_of(run.rank, together=bool(run.opened.attributes.get("collect_all_processes")))


def share_of(rank: int, *, together: bool) -> Share:
    """Return what of its machine a rank measures.

    Where every rank measures, each has its own GPU; where one does, it has all that it sees.

    Args:
        rank: The process's rank among all.
        together: Every rank measures.
    """
    local = local_rank(rank)
    alone = not together or world_size() <= 1
    return Share(machine=local == 0, gpu=None if local == 0 and alone else local)


def _forget_lock() -> None:
    global _lock  # noqa: PLW0603  another thread of the parent may have held it at the fork
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)
