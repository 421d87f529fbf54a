"""What a run's PROV-JSON tells, in the terms that a crate is written in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.records import Status
from provml_lightning.exporters.statements import (
    Element,
    Statements,
    literal_text,
    local_part,
    read_statements,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provml_lightning.exporters.source import RecordedRun

__all__ = ["Account", "facts_of", "give_account", "label_of", "path_of", "value_of"]

_RUN = "RunExecution"
_NUMBERS = frozenset({"int", "integer", "long", "double", "float"})
_VALUES = frozenset({"HyperParameter", "Metric", "Item"})


@dataclass(frozen=True, slots=True)
class Account:
    """One run in short.

    Attributes:
        name: Its name.
        facts: What is said of the run itself, by local name.
        status: How it stands.
        started: When, ISO 8601, None where nothing says it.
        ended: When, ISO 8601, None for a run without an end.
        user: Who started it.
        files: The entities that are files or folders of the run, by relative path.
        used: Keys of the entities that went in, in order.
        made: Keys of those that came out, in order.
        elements: All elements by key.
        code: What is said of the code that ran: what the user kept of it, then the run's commit.
        copies: Keys of copies inside the run by the key of what they are copies of.
    """

    name: str
    facts: Mapping[str, str]
    status: Status
    started: str | None
    ended: str | None
    user: str
    files: Mapping[str, Element]
    used: tuple[str, ...]
    made: tuple[str, ...]
    elements: Mapping[str, Element]
    code: tuple[Mapping[str, str], ...]
    copies: Mapping[str, str]


def give_account(run: RecordedRun) -> Account:
    """Return what a run's document and index tell."""
    statements = read_statements(run.document)
    elements = statements.elements
    own = next((one for one in elements.values() if _RUN in one.types), None)
    facts = facts_of(own) if own else {}
    people = (label_of(one) for one in elements.values() if "Person" in one.types)
    return Account(
        name=label_of(own) if own else run.layout.directory.name,
        facts=facts,
        status=_status(facts.get("status"), run.index.status),
        started=facts.get("startTime") or run.index.started,
        ended=facts.get("endTime") or run.index.ended,
        user=next(people, "unknown"),
        files={path: one for one in elements.values() if (path := path_of(one))},
        used=_ends(statements, "used", lambda one: one.target),
        made=_ends(statements, "wasGeneratedBy", lambda one: one.source),
        elements=elements,
        code=(*(facts_of(one) for one in elements.values() if _is_code(one)), *_commit(own)),
        copies=_copies(statements),
    )


def facts_of(element: Element) -> dict[str, str]:
    """Return what is said of an element as text, by local name."""
    return {local_part(name): literal_text(value) for name, value in element.attributes.items()}


def label_of(element: Element) -> str:
    """Return an element's name."""
    return literal_text(element.attributes.get("prov:label", element.name))


def value_of(element: Element, *names: str) -> Any:
    """Return the first of the facts that is there, a number as a number; None for none.

    What JSON has no number for, such as NaN, is text.
    """
    for name, value in element.attributes.items():
        if local_part(name) in names:
            return _plain(value)
    return None


def path_of(element: Element) -> str | None:
    """Return where an entity lies in the run; None for what is no file of its own."""
    path = element.attributes.get("dcterms:identifier")
    if not isinstance(path, str) or _VALUES.intersection(element.types):
        return None
    return path.rstrip("/") or None


def _is_code(element: Element) -> bool:
    return "SourceCode" in element.types or value_of(element, "commit") is not None


def _commit(run: Element | None) -> Iterator[Mapping[str, str]]:
    """Yield what a run says of its own code, unless its processes had several commits."""
    git = "git_"
    told = {local_part(name): value for name, value in (run.attributes if run else {}).items()}
    if f"{git}commit" in told and not isinstance(told[f"{git}commit"], list):
        found = {name: literal_text(told[name]) for name in told if name.startswith(git)}
        yield {name.removeprefix(git): value for name, value in found.items()}


def _ends(statements: Statements, kind: str, end: Any) -> tuple[str, ...]:
    found = (end(one) for one in statements.relations if one.kind == kind)
    return tuple(dict.fromkeys(found))


def _copies(statements: Statements) -> dict[str, str]:
    """Return the copy of each original: derived from it, and called the same."""
    pairs: Iterable[tuple[Element, Element]] = (
        (statements.elements[one.source], statements.elements[one.target])
        for one in statements.relations
        if one.kind == "wasDerivedFrom"
    )
    return {
        original.key: copy.key for copy, original in pairs if label_of(copy) == label_of(original)
    }


def _plain(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    text = str(value.get("$", ""))
    kind = local_part(str(value.get("type")))
    try:
        number = int(text) if kind in {"int", "integer", "long"} else float(text)
    except ValueError:
        return text
    return number if kind in _NUMBERS and math.isfinite(number) else text


def _status(told: str | None, known: Status) -> Status:
    try:
        return Status(told) if told else known
    except ValueError:  # a later version's word
        return known
