"""What lies in files, and what data was used: the things of a run, sorted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

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
        origins: Names of the models that it was derived from; ids of those of other documents.
        used_by: Names of the stages that used it.
    """

    name: str
    context: str | None
    path: str | None
    size: int | None
    deleted: bool = False
    origins: tuple[str, ...] = ()
    used_by: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


class _History(NamedTuple):
    origins: tuple[str, ...] = ()
    used_by: tuple[str, ...] = ()


def items_of(document: Document, runs: set[str]) -> dict[str, tuple[ItemFacts, ...]]:
    """Return the entities that are things: ``datasets``, ``models`` and ``artifacts``.

    Args:
        document: Where they are.
        runs: Ids of the activities that are the run itself.
    """
    gone = {entity for entity, _ in document.related("wasInvalidatedBy", "entity", "activity")}
    found: dict[str, list[ItemFacts]] = {"datasets": [], "models": [], "artifacts": []}
    grouped = {one.id: (_group(document, one), one) for one in document.of_kind("entity")}
    history = _history(document, runs, {key: group for key, (group, _) in grouped.items()})
    for group, element in grouped.values():
        if group is not None:
            item = _item(document, element, runs, deleted=element.id in gone)
            told = history.get(element.id, _History()) if group == "models" else _History()
            found[group].append(replace(item, origins=told.origins, used_by=told.used_by))
    found["models"].sort(key=lambda one: one.deleted)
    return {group: tuple(items) for group, items in found.items()}


def _history(
    document: Document, runs: set[str], groups: Mapping[str, str | None]
) -> dict[str, _History]:
    """Return what each entity was derived from, if that is a model, and which stages used it."""
    names = {
        one.id: document.dialect.label_of(one)
        for kind in ("entity", "activity")
        for one in document.of_kind(kind)
    }
    found: dict[str, _History] = {}
    for made, whole in document.related("wasDerivedFrom", "generatedEntity", "usedEntity"):
        if groups.get(whole, "models") == "models":
            told = found.get(made, _History())
            found[made] = told._replace(origins=_with(told.origins, names.get(whole, whole)))
    for stage, whole in document.related("used", "activity", "entity"):
        if stage not in runs:
            told = found.get(whole, _History())
            found[whole] = told._replace(used_by=_with(told.used_by, names.get(stage, stage)))
    return found


def _with(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return names if name in names else (*names, name)


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
