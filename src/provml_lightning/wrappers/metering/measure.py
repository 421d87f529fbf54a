"""One measure: from its beginning to the row, the upload and the run's record of it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from typing_extensions import override

from provml_lightning.capture.foreign import class_name
from provml_lightning.domain.records import Note, PowerMeasure
from provml_lightning.errors import RecordDroppedWarning, SamplerDroppedWarning
from provml_lightning.runtime.active import AnyRun, current
from provml_lightning.runtime.faults import warn
from provml_lightning.runtime.ranks import global_rank
from provml_lightning.runtime.run import Run
from provml_lightning.wrappers.metering.columns import INHERITED, Entry, row_of
from provml_lightning.wrappers.metering.energies import Energies
from provml_lightning.wrappers.metering.sensing import sensors_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from provml_lightning.domain.values import Plain
    from provml_lightning.wrappers.metering.labels import Labels, Whose
    from provml_lightning.wrappers.metering.outputs import Output
    from provml_lightning.wrappers.metering.sensing import Begun
    from provml_lightning.wrappers.metering.uploads import Uploads
    from provml_lightning.wrappers.metering.whereabouts import Place

__all__ = ["MOST_RECORDED", "Block", "Ledger", "Measure"]

Whereabouts = tuple[int, int]

MOST_RECORDED = 1000  # of one run: more activities than that are neither drawn nor read

_RECORDED: WeakKeyDictionary[AnyRun, Counter[str]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Ledger:
    """Whose measures these are, what turns energy into emissions, and where they are told.

    Attributes:
        powercap: The folder in which the CPUs' counters are; empty for the machine's own.
        powerlog: The folder that the caller gave for another tool's logs; it is told, not read.
    """

    whose: Whose
    place: Place
    output: Output
    uploads: Uploads | None = None
    powercap: str = ""
    powerlog: str | None = None


class Measure:
    """A measure that has begun; nothing that happens in it reaches the measured code.

    Args:
        ledger: Where it is told.
        labels: What is measured.
    """

    __slots__ = ("_began", "_begun", "_clock", "_labels", "_ledger", "_pid", "_run")

    def __init__(self, ledger: Ledger, labels: Labels) -> None:
        self._ledger, self._labels = ledger, labels
        self._run = current()
        self._pid: int | None = os.getpid()
        self._begun: Begun | None = None
        try:
            self._begun = sensors_of(ledger.powercap).begin()
        except Exception as error:  # noqa: BLE001  a driver may raise anything
            warn(f"nothing is measured: {error}", SamplerDroppedWarning)
        self._began = time.time_ns()
        self._clock = time.perf_counter_ns()

    def end(self, result: Any = None) -> None:  # noqa: ARG002  as a call of a function ends
        """Tell of code that came to its end; a second end is none."""
        self._finish(None)

    def fail(self, error: BaseException) -> None:
        """Tell of code that raised."""
        self._finish(error)

    @override
    def __repr__(self) -> str:
        return f"<Measure of {self._labels.package}: {self._labels.algorithm}>"

    def _finish(self, error: BaseException | None) -> None:
        seconds = (time.perf_counter_ns() - self._clock) / 1e9
        if self._pid != os.getpid():  # over already, or born by fork: the measure is the parent's
            return
        self._pid = None
        energies = _trying("nothing was measured", self._read) or Energies()
        _trying("a measure is not told", lambda: self._tell(seconds, energies, error))

    def _read(self) -> Energies | None:
        if self._begun is None:
            return None
        return sensors_of(self._ledger.powercap).end(self._begun)

    def _tell(self, seconds: float, energies: Energies, error: BaseException | None) -> None:
        run = self._run if self._run is not None and self._run.is_open else current()
        entry = self._entry(run, seconds, energies, error)
        row, ledger = row_of(entry), self._ledger
        ledger.output.add(row)
        if (uploads := ledger.uploads) is not None:
            posted = {name: row[name] for name in INHERITED}
            _trying("a row is not posted", lambda: uploads.add(posted))
        if run is not None and run.records:
            _trying("the run has no record of a measure", lambda: _record(run, entry))

    def _entry(
        self, run: AnyRun | None, seconds: float, energies: Energies, error: BaseException | None
    ) -> Entry:
        return Entry(
            labels=self._labels,
            whose=self._ledger.whose,
            place=self._ledger.place,
            energies=energies,
            began=self._began,
            seconds=seconds,
            run=run.directory.name if isinstance(run, Run) else None,
            rank=run.rank if run is not None else global_rank(),
            error=None if error is None else class_name(error),
            powerlog=self._ledger.powerlog,
        )


class Block:
    """A block of code to be measured, entered with ``with`` or ``async with``.

    One block may be entered again before it was left, in threads and in tasks too: each of them
    leaves what it entered last.

    Args:
        begin: Begins the measure.
    """

    def __init__(self, begin: Callable[[], Measure]) -> None:
        self._begin = begin
        self._measures: list[tuple[Whereabouts, Measure]] = []

    def __enter__(self) -> Measure:
        measure = self._begin()
        self._measures.append((_here(), measure))
        return measure

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        measure = self._left()
        if error is None:
            measure.end()
        else:
            measure.fail(error)

    async def __aenter__(self) -> Measure:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)

    def _left(self) -> Measure:
        """Return what was entered last from here; else, where another leaves it, the last."""
        here, entered = _here(), list(self._measures)
        last = next((one for one in reversed(entered) if one[0] == here), entered[-1])
        self._measures.remove(last)
        return last[1]


def _here() -> Whereabouts:
    """Return which thread runs, and which task of asyncio in it."""
    asyncio = sys.modules.get("asyncio")  # where nobody imported it, there are no tasks
    try:
        task = None if asyncio is None else asyncio.current_task()
    except RuntimeError:  # no loop runs
        task = None
    return threading.get_ident(), id(task)


def _trying(what: str, act: Callable[[], Any]) -> Any:
    """Return what something returns, or None with a warning: the measured code comes first."""
    try:
        return act()
    except Exception as error:  # noqa: BLE001  whatever it is, it is ours and not the code's
        warn(f"{what}: {error}", RecordDroppedWarning)
        return None


def _record(run: AnyRun, entry: Entry) -> None:
    told = _RECORDED.setdefault(run, Counter())
    told["measures"] += 1
    if told["measures"] <= MOST_RECORDED:
        run.record(_recorded(entry))
    elif told["measures"] == MOST_RECORDED + 1:
        message = f"measures after the first {MOST_RECORDED} are in their meter's file alone"
        run.record(Note(time=time.time_ns(), topic="power meter", message=message))


def _recorded(entry: Entry) -> PowerMeasure:
    labels, energies = entry.labels, entry.energies
    electricity = entry.place.electricity
    numbers: dict[str, Plain | None] = {
        "cpu_energy": energies.cpu,
        "ram_energy": energies.ram,
        "gpu_energy": energies.gpu,
        "process_cpu_energy": energies.process_cpu,
        "process_ram_energy": energies.process_ram,
        "energy_consumed": energies.used,
        "emissions": energies.emissions(electricity),
        "carbon_intensity": electricity.intensity,
        "carbon_intensity_source": electricity.known_from,
        "pue": electricity.pue,
        **{f"{name}_energy_source": source for name, source in energies.sources.items()},
    }
    told = {
        "data_type": labels.data_type,
        "data_shape": labels.data_shape,
        "algorithm_params": labels.algorithm_params,
        "comments": labels.comments,
    }
    return PowerMeasure(
        time=entry.began,
        seconds=entry.seconds,
        package=labels.package,
        algorithm=labels.algorithm,
        step=labels.step,
        told={name: text for name, text in told.items() if text},
        measured={name: number for name, number in numbers.items() if number is not None},
        error_type=entry.error,
    )
