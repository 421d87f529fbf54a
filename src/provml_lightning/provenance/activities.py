"""The run, its contexts, and who answers for them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from provml_lightning.__about__ import __title__
from provml_lightning.domain.records import Commit, Ended, Note, Opened, Status
from provml_lightning.provenance.costs import context_costs, run_costs
from provml_lightning.provenance.document import iri, literal, qualified, timestamp
from provml_lightning.provenance.nesting import final_values, outer_contexts
from provml_lightning.provenance.scope import facts
from provml_lightning.provenance.timeline import Interval, last_end
from provml_lightning.provenance.vocabulary import (
    PARENT,
    activity_id,
    agent_id,
    attribute,
    parent_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provml_lightning.domain.reading import RunContents, Writer
    from provml_lightning.domain.records import ContextDeclared, Record
    from provml_lightning.domain.values import Plain
    from provml_lightning.provenance.scope import Scope

__all__ = ["state_run"]

# PROV-ML (ProvLake) calls these contexts learning stages.
_STAGES = frozenset({"Training", "Validation", "Testing"})


def state_run(scope: Scope, contents: RunContents, opened: Opened | None) -> None:
    """State the run's activity, the contexts that it informed, and the agents behind both.

    Source:
        PROV-DM 5.1.2 (activity), 5.1.5 (communication), 5.3 (agents and responsibility).
    """
    run = _state_activity(scope, None, "provml:RunExecution", scope.run, _facts(contents, opened))
    for agent in _state_agents(scope, contents, opened, run):
        scope.document.relate("wasAssociatedWith", {"prov:activity": run, "prov:agent": agent})
    if opened is not None and opened.parent is not None:
        _state_parent(scope, opened.parent, run)
    declared = outer_contexts(contents)
    for context in scope.intervals:
        if context is not None:
            costs = facts(context_costs(contents, context))
            _state_context(scope, context, declared.get(context), costs)


def _state_context(
    scope: Scope, context: str, declared: ContextDeclared | None, costs: dict[str, Any]
) -> None:
    """State a context, informed by the one that it is a part of: the run, or another context."""
    stage = "provml:LearningStage" if context in _STAGES else "provml:Context"
    stated = facts({"source": declared.source if declared else None})
    activity = _state_activity(scope, context, stage, context, costs | stated)
    outer = scope.activity(declared.parent if declared else None)
    scope.document.relate("wasInformedBy", {"prov:informed": activity, "prov:informant": outer})


def _state_parent(scope: Scope, parent: str, run: str) -> None:
    """State that the run was opened inside another, whose activity keeps its own IRI.

    It has no type here, since this document tells of one run alone.
    """
    found = parent_of(parent)
    if found is None:
        return
    namespace, local, name = found
    scope.document.declare(PARENT, namespace)
    told = scope.document.element("activity", f"{PARENT}:{local}", {"prov:label": literal(name)})
    scope.document.relate("wasInformedBy", {"prov:informed": run, "prov:informant": told})


def _state_activity(
    scope: Scope, context: str | None, kind: str, label: str, attributes: dict[str, Any]
) -> str:
    interval = scope.intervals.get(context)
    times = _times(interval) if interval else {}
    stated = {**times, "prov:type": qualified([kind]), "prov:label": literal(label), **attributes}
    return scope.document.element("activity", activity_id(context, scope.run), stated)


def _times(interval: Interval) -> dict[str, str]:
    """Return an activity's times.

    Source:
        PROV-JSON, activity: ``prov:startTime`` and ``prov:endTime``; no reader sees PROV-O's names.
    """
    ended = {} if interval.end is None else {"prov:endTime": timestamp(interval.end)}
    return {"prov:startTime": timestamp(interval.start), **ended}


def _facts(contents: RunContents, opened: Opened | None) -> dict[str, Any]:
    own: dict[str, Plain | None] = {"status": contents.status.value}
    if (end := last_end(contents)) is not None:
        own |= {"error_type": end.error_type, "error_message": end.error_message}
    if opened is not None:
        own |= {
            "experiment_name": opened.experiment,
            "run_id": opened.run_id,
            "run_uuid": opened.uuid,
        }
    own["torn_records"] = contents.torn or None
    told = {
        **(opened.attributes if opened else {}),
        **final_values(contents),
        **run_costs(contents),
    }
    stated = facts(own) | facts(told) | _of_each_process(contents) | facts(own)
    if opened is not None and opened.parent is not None:
        stated[attribute("parent_run")] = iri(opened.parent)
    return stated | _notes(contents)


def _of_each_process(contents: RunContents) -> dict[str, Any]:
    """Return what differs between the processes that wrote one after the other, each value once."""
    first = min((rank for rank, one in contents.records if isinstance(one, Opened)), default=0)
    found: dict[str, dict[Plain, Any]] = defaultdict(dict)
    for rank, record in contents.records:
        told = _of_a_process(record) if rank == first else {}
        for name, value in told.items():
            if value is not None:
                found[name][value] = literal(value)
    several = {attribute(name): list(values.values()) for name, values in found.items()}
    return {name: values[0] if len(values) == 1 else values for name, values in several.items()}


def _of_a_process(record: Record) -> dict[str, Plain | None]:
    if isinstance(record, Commit):
        told = ("commit", "branch", "dirty", "remote")
        return {f"git_{name}": getattr(record, name) for name in told}
    if isinstance(record, Opened):
        return {"command_line": record.attributes.get("command_line")}
    return {}


def _failures(contents: RunContents) -> Iterator[str]:
    """Yield what ended a part of the run that went on afterwards."""
    ends = [one for _, one in contents.records if isinstance(one, Ended)]
    last = last_end(contents)
    for end in ends:
        bad = end.status in {Status.FAILED, Status.INTERRUPTED}
        same = last is not None and (end.status, end.error_message) == (
            last.status, last.error_message,
        )  # fmt: skip
        if bad and not same:
            why = ": ".join(filter(None, (end.error_type, end.error_message)))
            yield f"an earlier part {end.status.value}" + (f": {why}" if why else "")


def _notes(contents: RunContents) -> dict[str, Any]:
    """Return what the reader must know, each sentence once and with how often it was told."""
    counts: Counter[str] = Counter()
    for _, record in contents.records:
        if isinstance(record, Note):
            counts[f"{record.topic}: {record.message}"] += record.count
    told = [text if count == 1 else f"{text} ({count} times)" for text, count in counts.items()]
    told += dict.fromkeys(_failures(contents))
    return {attribute("note"): [literal(text) for text in told]} if told else {}


def _state_agents(
    scope: Scope, contents: RunContents, opened: Opened | None, run: str
) -> list[str]:
    """State the user, the library, and each process, which acted on behalf of the user."""
    add = scope.document.element
    name = opened.user if opened else "unknown"
    user = add("agent", agent_id("user", name), _agent("prov:Person", name))
    software = _agent("prov:SoftwareAgent", __title__)
    software |= facts({"version": opened.attributes.get("library_version") if opened else None})
    library = add("agent", agent_id("software", __title__), software)
    processes = [add("agent", *_process(segments)) for segments in _by_process(contents.writers)]
    for process in processes:
        scope.document.relate(
            "actedOnBehalfOf",
            {"prov:delegate": process, "prov:responsible": user, "prov:activity": run},
        )
    return [user, library, *processes]


def _agent(kind: str, label: str) -> dict[str, Any]:
    return {"prov:type": qualified([kind]), "prov:label": literal(label)}


def _by_process(writers: Sequence[Writer]) -> list[list[Writer]]:
    """Return the writers of each process together: it may have begun several segments."""
    found: dict[tuple[object, ...], list[Writer]] = defaultdict(list)
    for writer in writers:
        found[writer.rank, writer.host, writer.pid, writer.process_start].append(writer)
    return list(found.values())


def _process(segments: list[Writer]) -> tuple[str, dict[str, Any]]:
    writer = segments[0]
    several = len(segments) > 1
    stated = {
        "prov:type": qualified(["prov:SoftwareAgent", "provml:Process"]),
        "prov:label": f"rank {writer.rank}",
        **facts(
            {
                "rank": writer.rank,
                "segment": writer.segment,
                "last_segment": segments[-1].segment if several else None,
                "host": writer.host,
                "pid": writer.pid,
                "forked": writer.forked or None,
            }
        ),
    }
    return agent_id("process", writer.stem), stated
