"""A run at a glance: everything that a person asks first, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.catalogue import is_source_of_ours
from provml_lightning.domain.context import canonical_context
from provml_lightning.query.dialects import local_part
from provml_lightning.query.documents import load
from provml_lightning.query.files import FileFacts, files_of
from provml_lightning.query.heads import RunHead, facts_of_run, head_of
from provml_lightning.query.literals import text_of, texts_of, unwrap
from provml_lightning.query.summaries import MetricFacts, summaries_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from provml_lightning.query.dialects import Element
    from provml_lightning.query.documents import Document

__all__ = ["CostFacts", "ItemFacts", "ParameterFacts", "RunOverview", "read_overview"]

_KNOWN_ATTRIBUTES = frozenset({"type", "label", "context", "source", "identifier", "fullLabel"})

_NO_THINGS = ("provml:Metric", "provml:MetricsFile", "provml:Experiment", "provml:LearningStage")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterFacts:
    """A parameter and every value that it had, in order; ``source`` told it, None for the user."""

    name: str
    context: str | None
    source: str | None
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFacts:
    """A data set, a model, a version or an artifact; ``facts`` is what else is said of it.

    Attributes:
        path: Its file, as the document has it.
        size: Bytes of that file [B].
    """

    name: str
    context: str | None
    path: str | None
    size: int | None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFacts:
    """What the whole run used of something, and where that is known from."""

    name: str
    amount: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOverview:
    """What a run was and what came of it; None or empty where the document does not say.

    Attributes:
        library: Who recorded it, and which version.
        ranks: Global ranks of the processes that wrote [1].
        error: Type and message of the exception that ended it.
        torn: Lines of journals that were not whole [1].
        metrics: The user's own, then those that were measured for them.
        models: Models and, behind them, their versions.
        files: All files of the run's folder; for a document alone, none.
    """

    head: RunHead
    user: str | None
    host: str | None
    ranks: tuple[int, ...]
    library: str | None
    python: str | None
    command: str | None
    error: str | None
    notes: tuple[str, ...]
    costs: tuple[CostFacts, ...]
    torn: int
    parameters: tuple[ParameterFacts, ...]
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
        command=text_of(told.get("command_line") or told.get("execution_command")),
        error=_error(told),
        notes=tuple(texts_of(told.get("note"))),
        costs=tuple(_costs(told)),
        torn=int(told.get("torn_records") or 0),
        parameters=tuple(_parameters(document, runs)),
        metrics=tuple(
            sorted(summaries_of(document), key=lambda one: is_source_of_ours(one.source))
        ),
        files=tuple(files_of(document, source)),
        **_items(document, runs),
    )


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


def _costs(told: Mapping[str, Any]) -> Iterable[CostFacts]:
    for name, unit in told.items():
        quantity = name.removesuffix("_unit")
        if name.startswith("total_") and quantity in told and quantity != name:
            yield CostFacts(
                name=quantity.removeprefix("total_"),
                amount=float(told[quantity]),
                unit=str(unit),
                source=str(told.get(f"{quantity}_source")),
            )


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
            place = _context(document, element, runs), dialect.source_of(element)
            key = dialect.label_of(element), *place
            values.setdefault(key, []).append(unwrap(element.attributes[dialect.value]))
    for (name, context, source), told in values.items():
        yield ParameterFacts(name=name, context=context, source=source, values=tuple(told))


def _items(document: Document, runs: set[str]) -> dict[str, tuple[ItemFacts, ...]]:
    """Sort the entities that are things into data sets, models and artifacts."""
    found: dict[str, list[ItemFacts]] = {"datasets": [], "models": [], "artifacts": []}
    for element in document.of_kind("entity"):
        group = _group(document, element)
        if group is not None:
            found[group].append(_item(document, element, runs))
    return {group: tuple(items) for group, items in found.items()}


def _group(document: Document, element: Element) -> str | None:
    dialect = document.dialect
    if any(dialect.has_type(element, kind) for kind in _NO_THINGS) or _is_original(
        document, element
    ):
        return None
    if dialect.has_type(element, "provml:Dataset") or _has_statistics(document, element):
        return "datasets"
    if dialect.has_type(element, "provml:Model"):
        return "models"
    has_file = dialect.path_of(element) is not None
    return "artifacts" if has_file or dialect.has_type(element, "provml:Artifact") else None


def _has_statistics(document: Document, element: Element) -> bool:
    """Tell whether another tool described a data set here, where it gives no types."""
    mark = f"{document.dialect.label_of(element)}_stat_"
    return any(local_part(key).startswith(mark) for key in element.attributes)


def _is_original(document: Document, element: Element) -> bool:
    """Tell whether this is what a copy was made of: the copy stands for both."""
    if document.dialect.paths_from_document:
        return element.id.startswith("original/")
    return document.dialect.label_of(element).startswith(("Original_", "Original "))


def _item(document: Document, element: Element, runs: set[str]) -> ItemFacts:
    label = document.dialect.label_of(element)
    facts: dict[str, Any] = {}
    for key, value in element.attributes.items():
        name = _bare(local_part(key), label)
        if name not in _KNOWN_ATTRIBUTES:
            facts[name] = unwrap(value)
    size = facts.pop("file_size", None)
    return ItemFacts(
        name=label,
        context=_context(document, element, runs),
        path=document.dialect.path_of(element),
        size=int(size) if str(size).isdecimal() else None,
        facts=facts,
    )


def _bare(name: str, label: str) -> str:
    """Return an attribute's name without the label that other tools put before it."""
    for mark in (f"{label}_stat_", f"{label.partition('.')[0]}_"):
        if name.startswith(mark):
            return name[len(mark) :]
    return name


def _context(document: Document, element: Element, runs: set[str]) -> str | None:
    context = document.dialect.context_of(element)
    return None if context in runs else canonical_context(context)
