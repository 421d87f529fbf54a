"""PROV-CONSTRAINTS, checked on a document as the reference library reads it.

Knows nothing of the code under test. Every complaint begins with the number of the constraint in
the W3C recommendation of 30 April 2013; ``house`` marks what we promise beyond it. PROV orders
events and says nothing of clocks; that known times agree with the order is such a promise.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import networkx as nx
from prov.constants import PROV_N_MAP

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from prov.model import ProvDocument, ProvRecord

__all__ = ["complaints"]

# What each argument of a relation must be declared as (constraint 50, typing).
_TYPES = {
    "wasGeneratedBy": {"entity": "entity", "activity": "activity"},
    "used": {"activity": "activity", "entity": "entity"},
    "wasInformedBy": {"informed": "activity", "informant": "activity"},
    "wasInvalidatedBy": {"entity": "entity", "activity": "activity"},
    "wasDerivedFrom": {"generatedEntity": "entity", "usedEntity": "entity", "activity": "activity"},
    "wasAssociatedWith": {"activity": "activity", "agent": "agent", "plan": "entity"},
    "wasAttributedTo": {"entity": "entity", "agent": "agent"},
    "actedOnBehalfOf": {"delegate": "agent", "responsible": "agent", "activity": "activity"},
    "specializationOf": {"specificEntity": "entity", "generalEntity": "entity"},
    "alternateOf": {"alternate1": "entity", "alternate2": "entity"},
    "hadMember": {"collection": "entity", "entity": "entity"},
}


class _Row(NamedTuple):
    """A record as its kind, its id and its arguments without their prefix."""

    kind: str
    id: str | None
    arguments: dict[str, Any]
    types: frozenset[str]


def complaints(document: ProvDocument) -> list[str]:
    """Return everything in which a document is not valid; nothing for a valid one."""
    rows = [_row(record) for record in document.get_records()]
    found = [*_namespaces(document), *_keys(rows), *_typing(rows), *_unique(rows)]
    return [*found, *_derivations(rows), *_order(rows), *_within_the_run(rows)]


def _row(record: ProvRecord) -> _Row:
    arguments = {
        name.localpart: value.uri if hasattr(value, "uri") else value
        for name, value in record.formal_attributes
        if value is not None
    }
    types = frozenset(getattr(value, "uri", str(value)) for value in record.get_asserted_types())
    identifier = record.identifier.uri if record.identifier else None
    return _Row(PROV_N_MAP[record.get_type()], identifier, arguments, types)


def _namespaces(document: ProvDocument) -> Iterator[str]:
    declared = [*document.namespaces, document.get_default_namespace()]
    for namespace in filter(None, declared):
        parts = urlsplit(namespace.uri)
        if not parts.scheme or not (parts.netloc or parts.scheme == "urn"):
            yield f"house: the namespace {namespace.uri!r} is no absolute IRI"
        if not namespace.uri.endswith(("/", "#")):
            yield f"house: the namespace {namespace.uri!r} runs into its names"


def _keys(rows: list[_Row]) -> Iterator[str]:
    kinds: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.id is not None:
            kinds[row.id].append(row.kind)
    for identifier, found in kinds.items():
        if {"entity", "activity"} <= set(found):
            yield f"55: {identifier} is an entity and an activity"
        if len(found) > len(set(found)):
            yield f"22: {identifier} is told twice"
        if len(set(found) - {"entity", "activity", "agent"}) > 1:
            yield f"53: {identifier} names several relations"
        elif set(found) & set(_TYPES) and set(found) - set(_TYPES):
            yield f"54: {identifier} names a relation and an object"


def _typing(rows: list[_Row]) -> Iterator[str]:
    declared = {(row.kind, row.id) for row in rows}
    for row in rows:
        for argument, kind in _TYPES.get(row.kind, {}).items():
            target = row.arguments.get(argument)
            if target is not None and (kind, target) not in declared:
                yield f"50: {row.kind} has {target} as {argument}, which is no {kind} here"


def _unique(rows: list[_Row]) -> Iterator[str]:
    for number, kind in ((24, "wasGeneratedBy"), (25, "wasInvalidatedBy")):
        events = [row.arguments for row in rows if row.kind == kind]
        pairs = Counter((event["entity"], event.get("activity")) for event in events)
        yield from (f"{number}: {kind} {pair} twice" for pair, n in pairs.items() if n > 1)
        entities = Counter(event["entity"] for event in events)
        yield from (f"house: {kind} {one} by several" for one, n in entities.items() if n > 1)


def _derivations(rows: list[_Row]) -> Iterator[str]:
    known = {row.id: row for row in rows if row.kind in {"wasGeneratedBy", "used"} and row.id}
    for row in rows:
        if row.kind == "specializationOf" and len(set(row.arguments.values())) == 1:
            yield f"52: {row.arguments['specificEntity']} is a specialization of itself"
        if row.kind != "wasDerivedFrom":
            continue
        told, activity = row.arguments, row.arguments.get("activity")
        if activity is None and {"generation", "usage"} & told.keys():
            yield f"51: the derivation of {told['generatedEntity']} has events and no activity"
        for event, entity in (("generation", "generatedEntity"), ("usage", "usedEntity")):
            if (event_row := known.get(told.get(event))) is None:
                continue
            stated = event_row.arguments
            if stated["entity"] != told[entity] or stated.get("activity") != activity:
                yield f"house: the derivation of {told['generatedEntity']} has a foreign {event}"


def _order(rows: list[_Row]) -> Iterator[str]:
    """Look for a circle of events with a strict step, and for clocks against the order."""
    times: dict[Any, datetime] = {}
    graph = nx.DiGraph()
    for number, before, after in _steps(rows, times):
        strict = number in {41, 42}
        known = graph.get_edge_data(before, after, {"strict": False})
        graph.add_edge(before, after, strict=strict or known["strict"], number=number)
    condensed = nx.condensation(graph)
    for component in condensed.nodes.values():
        steps = graph.subgraph(component["members"]).edges(data=True)
        numbers = sorted({step["number"] for *_, step in steps})
        if any(step["strict"] for *_, step in steps):
            yield f"{numbers}: events precede themselves: {sorted(map(str, component['members']))}"
    earliest: dict[int, datetime] = {}
    for one in nx.topological_sort(condensed):
        members = condensed.nodes[one]["members"]
        bounds = [earliest[above] for above in condensed.predecessors(one) if above in earliest]
        own = [times[event] for event in members if event in times]
        if bounds and own and min(own) < max(bounds):
            yield f"house: {sorted(map(str, members))} at {min(own)}, but not before {max(bounds)}"
        if bounds or own:
            earliest[one] = max(bounds + own)


def _steps(rows: list[_Row], times: dict[Any, datetime]) -> Iterator[tuple[int, Any, Any]]:
    """Return the precedences that the records imply, each with its constraint."""
    for position, row in enumerate(rows):
        told = row.arguments
        if row.kind == "activity":
            yield 30, ("start", row.id), ("end", row.id)
            _note(times, ("start", row.id), told.get("startTime"))
            _note(times, ("end", row.id), told.get("endTime"))
        elif row.kind == "wasInformedBy":
            yield 35, ("start", told["informant"]), ("end", told["informed"])
        elif row.kind == "wasDerivedFrom":
            yield 42, ("made", told["usedEntity"]), ("made", told["generatedEntity"])
        elif row.kind in {"wasGeneratedBy", "used", "wasInvalidatedBy"}:
            yield from _event_steps(row, position, times)


def _event_steps(
    row: _Row, position: int, times: dict[Any, datetime]
) -> Iterator[tuple[int, Any, Any]]:
    entity, activity = row.arguments["entity"], row.arguments.get("activity")
    made, gone = ("made", entity), ("gone", entity)
    event: Any = {"wasGeneratedBy": made, "wasInvalidatedBy": gone}.get(
        row.kind, ("used", entity, position)
    )
    _note(times, event, row.arguments.get("time"))
    yield 36, made, gone
    if row.kind == "used":
        yield 37, made, event
        yield 38, event, gone
    if activity is not None and row.kind != "wasInvalidatedBy":
        number = 33 if row.kind == "used" else 34
        yield number, ("start", activity), event
        yield number, event, ("end", activity)


def _note(times: dict[Any, datetime], event: Any, time: datetime | None) -> None:
    if time is not None:
        times[event] = time


def _within_the_run(rows: list[_Row]) -> Iterator[str]:
    """Look for a context that began before its run, or ended after it."""
    activities = {row.id: row for row in rows if row.kind == "activity"}
    for row in rows:
        if row.kind != "wasInformedBy":
            continue
        outer = activities.get(row.arguments["informant"])
        inner = activities.get(row.arguments["informed"])
        if inner is None or outer is None:
            continue
        if (times := _pair(inner, outer, "startTime")) and times[0] < times[1]:
            yield f"house: {inner.id} began before {outer.id}"
        if (times := _pair(inner, outer, "endTime")) and times[0] > times[1]:
            yield f"house: {inner.id} ended after {outer.id}"


def _pair(inner: _Row, outer: _Row, name: str) -> tuple[datetime, datetime] | None:
    times = inner.arguments.get(name), outer.arguments.get(name)
    return None if times[0] is None or times[1] is None else (times[0], times[1])
