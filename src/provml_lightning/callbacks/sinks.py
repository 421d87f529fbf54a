"""What takes a monitor's values: a run, or Lightning's other loggers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from lightning.pytorch.loggers import Logger

from provml_lightning.callbacks.course import Moment
from provml_lightning.domain.carbon import CarbonSettings
from provml_lightning.errors import (
    ProvMLError,
    RecordDroppedWarning,
    SamplerReadError,
)
from provml_lightning.runtime.counting import excuse_count, note_remarks, remarks_of
from provml_lightning.runtime.electricity import known_electricity
from provml_lightning.runtime.faults import warn
from provml_lightning.runtime.run import Run
from provml_lightning.runtime.sampling import Sampling, sampling_of
from provml_lightning.samplers.flops import Count
from provml_lightning.samplers.system import Value

__all__ = ["LoggersSink", "RunSink", "Sink"]

_logger = logging.getLogger("provml_lightning")


class Sink(Protocol):
    """Takes values, and has the sampler that measures for it."""

    def sampling(self) -> Sampling | None:
        """Return its sampler, opened now if it was not; None where another process measures."""

    def keep(self, values: Iterable[Value], moment: Moment) -> None:
        """Keep values."""

    def excuse(self, topic: str, error: ProvMLError) -> None:
        """Say once that something could not be recorded."""

    def excuse_count(self, label: str, error: SamplerReadError) -> None:
        """Say once why there is no count."""

    def note_count(self, label: str, found: Count) -> None:
        """Say once what must be known of a count."""

    def close(self) -> None:
        """Let go of what it opened; a second call does nothing."""


class RunSink:
    """A run: it takes units and sources too, and its sampler lives as long as it does.

    Args:
        find: Returns the run, which may be another one after ``end_run``.
    """

    def __init__(self, find: Callable[[], Run]) -> None:
        self._find = find

    def sampling(self) -> Sampling | None:
        """Return the run's own sampler, so that nothing is measured twice."""
        return sampling_of(self._find())

    def keep(self, values: Iterable[Value], moment: Moment) -> None:
        """Keep values as metrics of the run."""
        run, now = self._find(), time.time_ns()
        for name, value, unit, source in values:
            run.record_metric(
                name, value, moment.context, moment.step, source, moment.epoch, now, unit
            )

    def excuse(self, topic: str, error: ProvMLError) -> None:
        """Warn once, and note it in the run.

        Raises:
            ProvMLError: The run is strict.
        """
        self._find().excuse(topic, error)

    def excuse_count(self, label: str, error: SamplerReadError) -> None:
        """Warn once, and note it in the run."""
        excuse_count(self._find(), label, error)

    def note_count(self, label: str, found: Count) -> None:
        """Note it in the run."""
        note_remarks(self._find(), label, found)

    def close(self) -> None:
        """Do nothing: the sampler ends with the run."""


class LoggersSink:
    """Lightning's other loggers: they take names and numbers, and the monitor has a sampler.

    Args:
        loggers: All of them get every value.
        monitor: The monitor's name, which the values' names begin with.
        folder: The disk is the one that it lies on.
    """

    def __init__(self, loggers: Sequence[Logger], monitor: str, folder: Path) -> None:
        self._loggers = loggers
        self._monitor = monitor
        self._folder = folder
        self._sampling: Sampling | None = None
        self._told: set[str] = set()

    def sampling(self) -> Sampling:
        """Return the monitor's own sampler.

        Raises:
            ConfigurationError: A variable of ours cannot be.
        """
        if self._sampling is None:
            electricity = known_electricity(CarbonSettings())
            self._sampling = Sampling(
                self._folder, electricity=electricity, note=_logger.info, silent=_tell_silence
            )
        return self._sampling

    def keep(self, values: Iterable[Value], moment: Moment) -> None:
        """Hand values to every logger, named as Lightning's DeviceStatsMonitor names its own."""
        told = list(values)
        for logger in self._loggers if told else ():
            group = f"{self._monitor}.{moment.context}{logger.group_separator}"
            metrics = {group + each.name: each.value for each in told}
            logger.log_metrics(metrics, step=moment.step)

    def excuse(self, topic: str, error: ProvMLError) -> None:
        """Warn once a topic."""
        self._warn_once(topic, str(error))

    def excuse_count(self, label: str, error: SamplerReadError) -> None:
        """Warn once."""
        self._warn_once(str(error), f"FLOPs {label!r} were not counted: {error}")

    def note_count(self, label: str, found: Count) -> None:
        """Warn once, for there is no document to note it in."""
        for remark in remarks_of(found):
            self._warn_once(remark, f"FLOPs {label!r}: {remark}")

    def close(self) -> None:
        """Stop the sampler."""
        sampling, self._sampling = self._sampling, None
        if sampling is not None:
            sampling.stop()

    def _warn_once(self, topic: str, message: str) -> None:
        if topic not in self._told:
            self._told.add(topic)
            warn(f"{self._monitor}: {message}", RecordDroppedWarning)


def _tell_silence() -> None:
    warn(
        "no emissions: where the electricity comes from was not told; the energies are kept. Set"
        " PROVML_COUNTRY or PROVML_CARBON_INTENSITY [gCO2eq/kWh]",
        RecordDroppedWarning,
    )
