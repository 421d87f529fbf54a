"""A run at a glance: everything that a person asks first, as values."""

from __future__ import annotations

from dataclasses import dataclass
from string import digits
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.catalogue import is_source_of_ours
from provml_lightning.provenance.vocabulary import ORIGIN
from provml_lightning.query.costs import CostFacts, costs_of
from provml_lightning.query.documents import load
from provml_lightning.query.files import FileFacts, files_of
from provml_lightning.query.heads import RunHead, facts_of_run, head_of
from provml_lightning.query.items import ItemFacts, context_of, items_of
from provml_lightning.query.literals import text_of, texts_of, unwrap
from provml_lightning.query.measures import MeasureFacts, measures_of
from provml_lightning.query.stages import StageFacts, stages_of
from provml_lightning.query.summaries import MetricFacts, summaries_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from provml_lightning.query.documents import Document

__all__ = ["ParameterFacts", "RunOverview", "read_overview"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterFacts:
    """A parameter and every value that it had, in order; ``source`` told it, None for the user."""

    name: str
    context: str | None
    source: str | None
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOverview:
    """What a run was and what came of it; None or empty where the document does not say.

    Attributes:
        library: Who recorded it, and which version.
        code: Commit, branch and repository of the code that ran.
        ranks: Global ranks of the processes that wrote [1].
        error: Type and message of the exception that ended it.
        continues: Names of the runs that it went on from.
        torn: Lines of journals that were not whole [1].
        metrics: The user's own, then those that were measured for them.
        models: Models and, behind them, their versions; those that were deleted last.
        files: All files of the run's folder; for a document alone, none.
    """

    head: RunHead
    user: str | None
    host: str | None
    ranks: tuple[int, ...]
    library: str | None
    python: str | None
    command: str | None
    code: str | None
    error: str | None
    continues: tuple[str, ...]
    notes: tuple[str, ...]
    costs: tuple[CostFacts, ...]
    torn: int
    parameters: tuple[ParameterFacts, ...]
    stages: tuple[StageFacts, ...]
    measures: tuple[MeasureFacts, ...]
    metrics: tuple[MetricFacts, ...]
    datasets: tuple[ItemFacts, ...]
    models: tuple[ItemFacts, ...]
    artifacts: tuple[ItemFacts, ...]
    files: tuple[FileFacts, ...]


def read_overview(source: dict[str, Any] | str | Path) -> RunOverview:
    """Return a run at a glance; also of one that is running or was killed, reading only.

    Args:
        source: A PROV-JSON (dictionary or path), a run's folder or its ZIP file.

    Raises:
        RecordNotFoundError: There is no such file or folder, or no document in it.
        QueryError: It cannot be read, or is no PROV-JSON.
        StorageError: A file of the run cannot be read.
    """
    document = load(source, quiet=True)
    told = facts_of_run(document)
    place = document.name if isinstance(source, dict) else str(source)
    runs = {one.id for one in document.of_kind("activity") if document.dialect.is_run(one)}
    return RunOverview(
        head=head_of(document, place),
        user=_user(document, told),
        host=text_of(told.get("host_name")),
        ranks=_ranks(document),
        library=_library(told),
        python=(text_of(told.get("python_version")) or "").partition(" ")[0] or None,
        command=_commands(told),
        code=_code(told),
        error=_error(told),
        continues=tuple(_continues(document, runs)),
        notes=tuple(texts_of(told.get("note"))),
        costs=tuple(costs_of(told, "total_")),
        torn=int(told.get("torn_records") or 0),
        parameters=tuple(_parameters(document, runs)),
        stages=tuple(stages_of(document)),
        measures=tuple(measures_of(document)),
        metrics=tuple(
            sorted(summaries_of(document), key=lambda one: is_source_of_ours(one.source))
        ),
        files=tuple(files_of(document, source)),
        **items_of(document, runs),
    )


def _commands(told: Mapping[str, Any]) -> str | None:
    """Return how the run was started; each process that went on with it has its own."""
    lines = texts_of(told.get("command_line") or told.get("execution_command"))
    return ", then ".join(lines) or None


def _code(told: Mapping[str, Any]) -> str | None:
    """Return the commits of the code that ran, and whether it was changed since."""
    commits = ", then ".join(texts_of(told.get("git_commit")))
    if not commits:
        return None
    branch = " and ".join(texts_of(told.get("git_branch")))
    is_dirty = "True" in texts_of(told.get("git_dirty"))
    state = "with changes that are not committed" if is_dirty else None
    where = " and ".join(texts_of(told.get("git_remote")))
    about = ", ".join(filter(None, (branch and f"on {branch}", state, where)))
    return f"{commits} ({about})" if about else commits


def _user(document: Document, told: Mapping[str, Any]) -> str | None:
    people = [one for one in document.agents if document.dialect.has_type(one, "prov:Person")]
    # Other tools state their user as an agent without a word about it.
    named = people or [one for one in document.agents if not one.attributes]
    if not named:
        return text_of(told.get("user_id"))
    return text_of(named[0].attributes.get("prov:label")) or named[0].id


def _ranks(document: Document) -> tuple[int, ...]:
    ranks = (one.attributes.get("provml:rank") for one in document.agents)
    return tuple(sorted({rank for rank in map(unwrap, ranks) if isinstance(rank, int)}))


def _library(told: Mapping[str, Any]) -> str | None:
    parts = text_of(told.get("library")), text_of(told.get("library_version"))
    return " ".join(filter(None, parts)) or None


def _error(told: Mapping[str, Any]) -> str | None:
    kind, message = text_of(told.get("error_type")), text_of(told.get("error_message"))
    if kind is None:
        return message
    return f"{kind}: {message}" if message else kind


def _parameters(document: Document, runs: set[str]) -> Iterable[ParameterFacts]:
    dialect = document.dialect
    values: dict[tuple[str, str | None, str | None], list[Any]] = {}
    for element in document.of_kind("entity"):
        if dialect.is_parameter(element):
            place = context_of(document, element, runs), dialect.source_of(element)
            key = dialect.label_of(element), *place
            values.setdefault(key, []).append(unwrap(element.attributes[dialect.value]))
    for (name, context, source), told in values.items():
        yield ParameterFacts(name=name, context=context, source=source, values=tuple(told))


def _continues(document: Document, runs: set[str]) -> Iterable[str]:
    """Yield the names of the runs that this one went on from."""
    names = {one.id: document.dialect.label_of(one) for one in document.of_kind("activity")}
    for run, earlier in document.related("wasInformedBy", "informed", "informant"):
        prefix, colon, _ = earlier.partition(":")
        if run in runs and colon and prefix.rstrip(digits) == ORIGIN:
            yield names.get(earlier, earlier)
