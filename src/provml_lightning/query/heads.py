"""What a run is called and how it stands: what is asked of a thousand runs at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.records import Status
from provml_lightning.query.dialects import local_part
from provml_lightning.query.documents import Document, load
from provml_lightning.query.literals import text_of, unwrap

if TYPE_CHECKING:
    from provml_lightning.query.dialects import Element
    from provml_lightning.storage.layout import RunLayout

__all__ = [
    "RunHead",
    "facts_of",
    "facts_of_run",
    "head_of",
    "moment_of",
    "own_layout",
    "read_head",
    "seconds_between",
]

_START = ("startTime", "startedAtTime", "execution_start_time")
_END = ("endTime", "endedAtTime", "execution_end_time")
_OLD_RUN = ("Experiment", "LearningStage")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHead:
    """What a run is called and how it stands; None where nothing says.

    Attributes:
        place: The run's folder, or its document where that lies alone.
        status: How a run of ours stands; documents of other tools do not say.
        started: When it began; without a time zone where the document gives none.
        ended: When it ended, likewise.
        settled: The documents hold everything that was logged.
    """

    place: str
    name: str
    experiment: str | None
    run_id: str | None
    status: Status | None
    started: datetime | None
    ended: datetime | None
    settled: bool = True

    @property
    def duration(self) -> float | None:
        """How long it took [s]."""
        return seconds_between(self.started, self.ended)


def read_head(folder: Path) -> RunHead:
    """Return the head of a run from its ``run.json``, from its document where it has none.

    Raises:
        QueryError: There is no document, or it cannot be read.
        StorageError: A file of the run cannot be read.
    """
    from provml_lightning.storage.index import read_index

    layout = own_layout(folder)
    index = read_index(layout.index) if layout else None
    if layout is None or index is None:
        return head_of(load(folder, quiet=True), str(folder))
    status, settled = _standing(layout, index.status)
    return RunHead(
        place=str(folder),
        name=f"{index.experiment}_{index.run_id}",
        experiment=index.experiment,
        run_id=index.run_id,
        status=status,
        started=moment_of(index.started),
        ended=moment_of(index.ended) if status is index.status else None,
        settled=settled,
    )


def head_of(document: Document, place: str) -> RunHead:
    """Return the head of the run that a document states.

    Raises:
        StorageError: A file of the run cannot be read.
    """
    facts = facts_of_run(document)
    status = _status(facts.get("status"))
    layout = own_layout(document.folder) if document.archive is None else None
    settled = document.unsettled is None
    if layout is not None and status is not None:
        status, settled = _standing(layout, status)
    label = facts.get("label") or facts.get("experiment_name") or Path(place).stem
    return RunHead(
        place=place,
        name=str(label),
        experiment=text_of(facts.get("experiment_name")),
        run_id=text_of(facts.get("run_id")),
        status=status,
        started=_first_moment(facts, _START),
        ended=_first_moment(facts, _END),
        settled=settled,
    )


def facts_of_run(document: Document) -> dict[str, Any]:
    """Return what a document says of the run itself, by names without their prefix.

    The oldest generation says it of two entities, and when it was of two parameters.
    """
    dialect = document.dialect
    facts: dict[str, Any] = {}
    for element in document.of_kind("entity"):
        if dialect.is_parameter(element) and element.id in (*_START, *_END):
            facts[element.id] = unwrap(element.attributes[dialect.value])
        elif any(dialect.has_type(element, f"provml:{kind}") for kind in _OLD_RUN):
            facts |= facts_of(element)
    for element in document.of_kind("activity"):
        if dialect.is_run(element):
            label = {} if dialect.embedded else {"label": local_part(dialect.label_of(element))}
            facts |= label | facts_of(element)
    return facts


def own_layout(place: Any) -> RunLayout | None:
    """Return the layout of a folder that is a run of ours."""
    from provml_lightning.storage.layout import RunLayout

    if place is None:
        return None
    layout = RunLayout(Path(place))
    return layout if layout.is_run() else None


def _standing(layout: RunLayout, told: Status) -> tuple[Status, bool]:
    """Return how a run stands today and whether its documents hold everything."""
    from provml_lightning.storage.contents import is_settled, read_steadily

    settled = is_settled(layout)
    if settled and told not in (Status.RUNNING, Status.INCOMPLETE):
        return told, True
    return read_steadily(layout, lambda ledger: ledger.status), settled


def facts_of(element: Element) -> dict[str, Any]:
    """Return what is said of an element, by names without their prefix."""
    return {local_part(key): unwrap(value) for key, value in element.attributes.items()}


def seconds_between(started: datetime | None, ended: datetime | None) -> float | None:
    """Return the time from one moment to another [s]; None where that is not known."""
    if started is None or ended is None or (started.tzinfo is None) != (ended.tzinfo is None):
        return None
    return (ended - started).total_seconds()


def _status(told: Any) -> Status | None:
    return Status(told) if told in tuple(Status) else None


def _first_moment(facts: dict[str, Any], names: tuple[str, ...]) -> datetime | None:
    return next((moment_of(facts[name]) for name in names if name in facts), None)


def moment_of(value: Any) -> datetime | None:
    """Return a time that is ISO 8601 or seconds since 1970 as text; None for anything else."""
    if isinstance(value, datetime) or value is None:
        return value
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        pass
    try:
        return datetime.fromtimestamp(float(value), UTC)
    except (ValueError, OverflowError, OSError, TypeError):
        return None
