"""What lies in files, and what data was used: the things of a run, sorted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.context import canonical_context
from provml_lightning.query.dialects import local_part
from provml_lightning.query.literals import unwrap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provml_lightning.query.dialects import Element
    from provml_lightning.query.documents import Document

__all__ = ["ItemFacts", "context_of", "items_of"]

_KNOWN_ATTRIBUTES = frozenset({"type", "label", "context", "source", "identifier", "fullLabel"})

_NO_THINGS = ("provml:Metric", "provml:MetricsFile", "provml:Experiment", "provml:LearningStage")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFacts:
    """A data set, a model, a version or an artifact; ``facts`` is what else is said of it.

    Attributes:
        path: Its file, as the document has it.
        size: Bytes of that file [B].
        deleted: The file is no more, or holds other bytes now.
    """

    name: str
    context: str | None
    path: str | None
    size: int | None
    deleted: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


def items_of(document: Document, runs: set[str]) -> dict[str, tuple[ItemFacts, ...]]:
    """Return the entities that are things: ``datasets``, ``models`` and ``artifacts``.

    Args:
        document: Where they are.
        runs: Ids of the activities that are the run itself.
    """
    gone = {entity for entity, _ in document.related("wasInvalidatedBy", "entity", "activity")}
    found: dict[str, list[ItemFacts]] = {"datasets": [], "models": [], "artifacts": []}
    for element in document.of_kind("entity"):
        group = _group(document, element)
        if group is not None:
            found[group].append(_item(document, element, runs, deleted=element.id in gone))
    found["models"].sort(key=lambda one: one.deleted)
    return {group: tuple(items) for group, items in found.items()}


def context_of(document: Document, element: Element, runs: set[str]) -> str | None:
    """Return an element's context; None for the run itself."""
    context = document.dialect.context_of(element)
    return None if context in runs else canonical_context(context)


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


def _item(document: Document, element: Element, runs: set[str], *, deleted: bool) -> ItemFacts:
    label = document.dialect.label_of(element)
    facts: dict[str, Any] = {}
    for key, value in element.attributes.items():
        name = _bare(local_part(key), label)
        if name not in _KNOWN_ATTRIBUTES:
            facts[name] = unwrap(value)
    size = facts.pop("file_size", None)
    return ItemFacts(
        name=label,
        context=context_of(document, element, runs),
        path=document.dialect.path_of(element),
        size=int(size) if str(size).isdecimal() else None,
        deleted=deleted,
        facts=facts,
    )


def _bare(name: str, label: str) -> str:
    """Return an attribute's name without the label that other tools put before it."""
    for mark in (f"{label}_stat_", f"{label.partition('.')[0]}_"):
        if name.startswith(mark):
            return name[len(mark) :]
    return name
