"""What a run was: its activities, its entities, its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from provml_lightning.domain.context import canonical_context
from provml_lightning.errors import QueryError, RecordNotFoundError
from provml_lightning.query.dialects import Dialect, Element, local_part
from provml_lightning.query.documents import Document, load
from provml_lightning.query.literals import unwrap as plain
from provml_lightning.query.matching import not_found

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

__all__ = ["get_parameter", "list_activities", "list_entities", "list_parameters"]


def list_activities(source: dict[str, Any] | str | Path) -> list[str]:
    """Return the identifiers of all activities, in the document's order."""
    return list(dict.fromkeys(element.id for element in load(source).of_kind("activity")))


def list_entities(source: dict[str, Any] | str | Path, entity_type: str | None = None) -> list[str]:
    """Return the identifiers of the entities, in the document's order, each of them once.

    Args:
        source: A PROV-JSON (dictionary or path), a run's folder or its ZIP file.
        entity_type: Only entities of this type, such as ``"provml:Metric"``; every generation's
            spelling of it is understood.
    """
    document = load(source)
    return list(
        dict.fromkeys(
            element.id
            for element in document.of_kind("entity")
            if entity_type is None or document.dialect.has_type(element, entity_type)
        )
    )


def get_parameter(
    source: dict[str, Any] | str | Path, name: str, param: str, unwrap: bool = True
) -> Any:
    """Return one value of an activity or an entity.

    Args:
        source: A PROV-JSON (dictionary or path), a run's folder or its ZIP file.
        name: The activity's or entity's identifier, else its label; a context in any spelling.
        param: The attribute, with or without its prefix (``"value"`` is a parameter's value); else
            the label of a parameter that belongs to the context or run called ``name``.
        unwrap: A typed literal becomes Python's value; False: it stays as the document has it.

    Returns:
        The value; where it was recorded again, the last.

    Raises:
        RecordNotFoundError: There is no such name or parameter; the message holds the closest.
        QueryError: Several elements are called ``name`` and their values differ.
    """
    document = load(source)
    named = _named(document, name)
    parameters = _parameters_of(document, name, named)
    found = _attributes_called(document.dialect, named, param) or [
        fact for fact in parameters if fact.key == param
    ]
    if not found:
        known = [key for element in named for key in element.attributes]
        known += [fact.key for fact in parameters]
        raise _no_parameter(document, name, param, known)
    latest = {fact.place: fact for fact in found}
    if any(fact.value != found[-1].value for fact in latest.values()):
        owners = ", ".join(repr(fact.owner) for fact in latest.values())
        raise QueryError(
            f"{document.name}: several elements are called {name!r} and their {param!r} differs;"
            f" pass the identifier of one as name: {owners}"
        )
    return plain(found[-1].value) if unwrap else found[-1].value


def list_parameters(
    data: dict[str, Any] | str | Path, name: str | None = None, unwrap: bool = True
) -> dict[str, Any]:
    """Return parameters by name.

    Without ``name``, first every parameter by its label, then every attribute of the activities
    and of the entities that are neither parameters nor metrics. A label is bare where one context
    has it, an attribute where one element has it; where several do, each is preceded by its owner:
    ``"Training/lr"``, ``"train_dataset/prov:label"`` (the run's own parameters stay bare). What was
    recorded several times under one key is the list of its values, in order: nothing is lost.

    Args:
        data: A PROV-JSON (dictionary or path), a run's folder or its ZIP file.
        name: Only the attributes of this activity or entity, found as in ``get_parameter``; of a
            context or run its parameters too.
        unwrap: Typed literals become Python's values; False: they stay as the document has them.

    Raises:
        RecordNotFoundError: There is no such name; the message holds the closest.
    """
    document = load(data)
    if name is None:
        parameters = _parameters(document)
        attributes = [
            fact
            for element in document.elements
            if not (document.dialect.is_parameter(element) or document.dialect.is_metric(element))
            for fact in _attributes(document.dialect, element)
        ]
    else:
        named = _named(document, name)
        parameters = _parameters_of(document, name, named)
        attributes = [fact for one in named for fact in _attributes(document.dialect, one)]
    told = _by_key(parameters, frozenset())
    told |= _by_key(attributes, told.keys())
    return {key: _value(facts, unwrap=unwrap) for key, facts in told.items()}


class _Fact(NamedTuple):
    """A value that something has; of two in one ``place`` the later replaces the earlier."""

    owner: str
    key: str
    value: Any
    place: tuple[str | None, ...]


def _named(document: Document, name: str) -> list[Element]:
    """Return what has a name: as identifier, else as label or context.

    Raises:
        RecordNotFoundError: Nothing has it.
    """
    dialect = document.dialect
    context = canonical_context(name)
    named = [one for one in document.elements if one.id == name] or [
        one
        for one in document.elements
        if dialect.label_of(one) == name
        or (one.kind == "activity" and context in _contexts_named(dialect, one))
    ]
    if not named and not any(fact.owner == context for fact in _parameters(document)):
        known = (text for one in document.elements for text in (one.id, dialect.label_of(one)))
        raise not_found("activity or entity", name, known, where=document.name)
    return named


def _contexts_named(dialect: Dialect, activity: Element) -> set[str | None]:
    """Return the contexts that an activity may stand for, in their one spelling."""
    names = (activity.id, local_part(activity.id), dialect.label_of(activity))
    return {canonical_context(name) for name in names}


def _parameters(document: Document) -> list[_Fact]:
    """Return all parameters; the owner is the context in its one spelling, of the run's own ""."""
    dialect = document.dialect
    runs = {one.id for one in document.of_kind("activity") if dialect.is_run(one)}
    found = []
    for element in document.of_kind("entity"):
        if dialect.is_parameter(element):
            context, label = dialect.context_of(element), dialect.label_of(element)
            owner = "" if context in runs else canonical_context(context) or ""
            value = element.attributes[dialect.value]
            found.append(_Fact(owner, label, value, (owner, label)))
    return found


def _parameters_of(document: Document, name: str, named: list[Element]) -> list[_Fact]:
    """Return the parameters of the contexts, or of the run, that a name stands for."""
    activities = [one for one in named if one.kind == "activity"]
    owners: set[str | None] = {canonical_context(name)}
    for one in activities:
        owners |= _contexts_named(document.dialect, one)
        if document.dialect.is_run(one):
            owners.add("")
    return [fact for fact in _parameters(document) if fact.owner in owners]


def _no_parameter(
    document: Document, name: str, param: str, known: list[str]
) -> RecordNotFoundError:
    """Return the error for a parameter that is not there; it says who else has one so called."""
    error = not_found("parameter", param, known, where=f"{name!r} in {document.name}")
    owners = dict.fromkeys(fact.owner for fact in _parameters(document) if fact.key == param)
    if not owners:
        return error
    others = ", ".join(repr(owner) if owner else "the run itself" for owner in owners)
    return RecordNotFoundError(
        f"{error}. {param} is a parameter of {others}; asked for as ({param!r}, 'value') it is"
        " found whoever has it"
    )


def _attributes(dialect: Dialect, element: Element) -> Iterator[_Fact]:
    place = (element.kind, dialect.label_of(element), dialect.context_of(element))
    for key, value in element.attributes.items():
        yield _Fact(element.id, key, value, place)


def _attributes_called(dialect: Dialect, named: list[Element], param: str) -> list[_Fact]:
    """Return attributes by their whole name, else by its local part, else the value as such."""
    facts = [fact for element in named for fact in _attributes(dialect, element)]
    return (
        [fact for fact in facts if fact.key == param]
        or [fact for fact in facts if local_part(fact.key) == param]
        or [fact for fact in facts if param == "value" and fact.key == dialect.value]
    )


def _by_key(facts: Iterable[_Fact], taken: Collection[str]) -> dict[str, list[_Fact]]:
    """Group facts by key, preceded by the owner where several have it or it is taken."""
    facts = list(facts)
    owners: dict[str, set[str]] = {}
    for fact in facts:
        owners.setdefault(fact.key, set()).add(fact.owner)
    grouped: dict[str, list[_Fact]] = {}
    for fact in facts:
        bare = not fact.owner or (len(owners[fact.key]) == 1 and fact.key not in taken)
        grouped.setdefault(fact.key if bare else f"{fact.owner}/{fact.key}", []).append(fact)
    return grouped


def _value(facts: list[_Fact], *, unwrap: bool) -> Any:
    values = [plain(fact.value) if unwrap else fact.value for fact in facts]
    return values[0] if len(values) == 1 else values
