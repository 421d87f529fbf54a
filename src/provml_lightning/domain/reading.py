"""What a run's files say when they are read: writers, series, files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provml_lightning.domain.measured import Total
    from provml_lightning.domain.records import Record, Status

__all__ = ["MetricKey", "MetricSeries", "MetricsFile", "RunContents", "Writer", "stem"]


class MetricKey(NamedTuple):
    """What makes a metric one metric."""

    key: str
    context: str | None
    source: str | None


def stem(rank: int, segment: int) -> str:
    """Return the name that the files of a writer share."""
    return f"rank-{rank:05d}" + ("" if segment == 1 else f".{segment}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """A process (or a later segment of it) that wrote into the run.

    Attributes:
        rank: Global rank [1].
        segment: 1 for the first writer of this rank, then counted up [1].
        process_start: The kernel's start time of the process [jiffies since boot], if it tells.
        place: Where the process id is that process's: boot and process namespace, if known.
    """

    rank: int
    segment: int
    host: str
    pid: int
    process_start: int | None
    time: int
    forked: bool = False
    place: str | None = None

    @property
    def stem(self) -> str:
        """The name that this writer's files share."""
        return stem(self.rank, self.segment)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsFile:
    """One file that holds all metrics of a context; ``path`` is relative to the run."""

    path: str
    context: str | None
    rows: int
    size: int
    sha256: str
    media_type: str


class MetricSeries(NamedTuple):
    """A metric's values in short, in the order in which they were logged.

    ``minimum`` and ``maximum`` are over the values that are numbers; None where there are none.
    Times are UTC [ns]. ``path`` is None where the values still wait in a point log.
    """

    name: MetricKey
    unit: str | None
    rows: int
    first: float
    last: float
    minimum: float | None
    maximum: float | None
    first_step: int | None
    last_step: int | None
    first_time: int
    last_time: int
    path: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContents:
    """Everything that a run's files hold, from which every document is compiled.

    ``records`` are the facts of all writers with the rank of each, in order of time;
    ``totals`` are the sums of what the library measured.
    """

    directory: str
    writers: Sequence[Writer]
    records: Sequence[tuple[int, Record]]
    series: Sequence[MetricSeries]
    files: Sequence[MetricsFile]
    status: Status
    torn: int
    totals: Sequence[Total] = ()
