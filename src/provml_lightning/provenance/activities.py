"""The run, its contexts, and who answers for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provml_lightning.__about__ import __title__, __version__
from provml_lightning.domain.records import Note, Opened
from provml_lightning.provenance.document import literal, qualified, timestamp
from provml_lightning.provenance.timeline import Interval, last_end
from provml_lightning.provenance.vocabulary import activity_id, agent_id, attribute

if TYPE_CHECKING:
    from provml_lightning.domain.reading import RunContents, Writer
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
    agents = _state_agents(scope, contents, opened, run)
    for agent in agents:
        scope.document.relate("wasAssociatedWith", activity=run, agent=agent)
    for context in filter(None, scope.intervals):
        stage = "provml:LearningStage" if context in _STAGES else "provml:Context"
        activity = _state_activity(scope, context, stage, context, {})
        scope.document.relate("wasInformedBy", informed=activity, informant=run)


def _state_activity(
    scope: Scope, context: str | None, kind: str, label: str, attributes: dict[str, Any]
) -> str:
    interval = scope.intervals.get(context)
    times = _times(interval) if interval else {}
    stated = {**times, "prov:type": qualified([kind]), "prov:label": label, **attributes}
    return scope.document.element("activity", activity_id(context, scope.run), stated)


def _times(interval: Interval) -> dict[str, str]:
    """Return an activity's times.

    Source:
        PROV-JSON 3.2: ``prov:startTime`` and ``prov:endTime``; PROV-O's names are invisible here.
    """
    ended = {} if interval.end is None else {"prov:endTime": timestamp(interval.end)}
    return {"prov:startTime": timestamp(interval.start), **ended}


def _facts(contents: RunContents, opened: Opened | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"status": contents.status.value}
    if (end := last_end(contents)) is not None:
        facts |= {"error_type": end.error_type, "error_message": end.error_message}
    if opened is not None:
        facts |= {
            "experiment_name": opened.experiment,
            "run_id": opened.run_id,
            "run_uuid": opened.uuid,
            "parent_run_uuid": opened.parent,
            **opened.attributes,
        }
    if contents.torn:
        facts["torn_records"] = contents.torn
    stated = {attribute(name): literal(value) for name, value in facts.items() if value is not None}
    notes = [_sentence(record) for _, record in contents.records if isinstance(record, Note)]
    return stated | ({attribute("note"): notes} if notes else {})


def _sentence(note: Note) -> str:
    return f"{note.topic}: {note.message}"


def _state_agents(
    scope: Scope, contents: RunContents, opened: Opened | None, run: str
) -> list[str]:
    """State the user, the library, and each process, which acted on behalf of the user."""
    add = scope.document.element
    name = opened.user if opened else "unknown"
    user = add("agent", agent_id("user", name), _agent("prov:Person", name))
    software = _agent("prov:SoftwareAgent", __title__)
    version = opened.attributes.get("library_version", __version__) if opened else __version__
    software[attribute("version")] = literal(version)
    library = add("agent", agent_id("software", __title__), software)
    processes = [add("agent", *_process(writer)) for writer in contents.writers]
    for process in processes:
        scope.document.relate("actedOnBehalfOf", delegate=process, responsible=user, activity=run)
    return [user, library, *processes]


def _agent(kind: str, label: str) -> dict[str, Any]:
    return {"prov:type": qualified([kind]), "prov:label": label}


def _process(writer: Writer) -> tuple[str, dict[str, Any]]:
    facts: dict[str, Plain | None] = {
        "rank": writer.rank,
        "segment": writer.segment,
        "host": writer.host,
        "pid": writer.pid,
        "forked": writer.forked or None,
    }
    stated = {attribute(name): literal(value) for name, value in facts.items() if value is not None}
    kinds = qualified(["prov:SoftwareAgent", "provml:Process"])
    return agent_id("process", writer.stem), {
        "prov:type": kinds,
        "prov:label": f"rank {writer.rank}",
        **stated,
    }
