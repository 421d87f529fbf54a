"""The run, its contexts and its agents."""

from __future__ import annotations

import dataclasses
from typing import Any

from provml_lightning.domain.records import Note, Parameter, Status
from provml_lightning.provenance.statement import state
from tests.conformance.prov.runs import PARENT, UUID, at, contents, ended, metric, opened, writer


def test_a_run_says_when_it_was_how_it_stands_and_what_was_true_of_it() -> None:
    facts = {"host_name": "node1", "library_version": "0.1.0", "status": "the user's"}
    error = {"error_type": "ValueError", "error_message": "NaN loss"}
    run = contents(
        opened(attributes=facts), ended(Status.FAILED, **error), status=Status.FAILED, torn=2
    )
    assert state(run)["activity"]["run/digits_0"] == {
        "prov:startTime": "2026-01-02T03:04:05.000000+00:00",
        "prov:endTime": "2026-01-02T03:05:05.000000+00:00",
        "prov:type": {"$": "provml:RunExecution", "type": "prov:QUALIFIED_NAME"},
        "prov:label": "digits_0",
        "provml:status": "failed",
        "provml:error_type": "ValueError",
        "provml:error_message": "NaN loss",
        "yprov:experiment_name": "digits",
        "yprov:run_id": "0",
        "provml:run_uuid": UUID,
        "provml:torn_records": 2,
        "yprov:host_name": "node1",
        "provml:library_version": "0.1.0",
    }


def test_contexts_are_informed_by_the_run_and_the_known_stages_say_so() -> None:
    run = contents(opened(), ended(), series=[metric("loss"), metric("loss", "my/own")])
    document = state(run)
    types = {name: one["prov:type"]["$"] for name, one in document["activity"].items()}
    assert types == {
        "run/digits_0": "provml:RunExecution",
        "context/Training": "provml:LearningStage",
        "context/my%2fown": "provml:Context",
    }
    assert list(document["wasInformedBy"].values()) == [
        {"prov:informed": "context/Training", "prov:informant": "run/digits_0"},
        {"prov:informed": "context/my%2fown", "prov:informant": "run/digits_0"},
    ]


def test_a_nested_run_is_informed_by_its_parent_which_has_its_own_prefix() -> None:
    document = state(contents(opened(parent=PARENT), ended()))
    assert document["prefix"]["parent"] == "urn:uuid:0b54d6c2-1f3c-4b57-8d3e-ba9876543210#"
    assert document["activity"]["parent:run/sweep%201_7"] == {"prov:label": "sweep 1_7"}
    assert document["activity"]["run/digits_0"]["provml:parent_run"] == {
        "$": PARENT,
        "type": "xsd:anyURI",
    }
    assert list(document["wasInformedBy"].values()) == [
        {"prov:informed": "run/digits_0", "prov:informant": "parent:run/sweep%201_7"}
    ]


def test_a_process_is_one_agent_however_many_segments_it_wrote() -> None:
    run = contents(opened(), writers=[writer(), writer(0, 2), writer(0, 3)])
    processes = {
        name: one for name, one in state(run)["agent"].items() if name.startswith("process/")
    }
    assert list(processes) == ["process/rank-00000"]
    assert processes["process/rank-00000"]["provml:last_segment"] == 3


def test_the_user_answers_for_every_process() -> None:
    resumed = dataclasses.replace(writer(0, 2), pid=101, process_start=9)
    run = contents(opened(user="Ann B"), writers=[writer(), writer(1), resumed])
    document = state(run)
    assert {name: one["prov:label"] for name, one in document["agent"].items()} == {
        "user/Ann%20B": "Ann B",
        "software/provml-lightning": "provml-lightning",
        "process/rank-00000": "rank 0",
        "process/rank-00001": "rank 1",
        "process/rank-00000.2": "rank 0",
    }
    assert list(document["actedOnBehalfOf"].values())[1] == {
        "prov:delegate": "process/rank-00001",
        "prov:responsible": "user/Ann%20B",
        "prov:activity": "run/digits_0",
    }
    associated = [one["prov:agent"] for one in document["wasAssociatedWith"].values()]
    assert associated == list(document["agent"])


def test_the_library_has_the_version_that_recorded_not_the_one_that_compiles() -> None:
    def version(document: dict[str, Any]) -> Any:
        return document["agent"]["software/provml-lightning"].get("provml:version")

    recorded = contents(opened(attributes={"library_version": "0.0.1"}))
    assert version(state(recorded)) == "0.0.1"
    assert version(state(contents())) is None


def test_notes_are_told_once_with_how_often_they_came() -> None:
    lost = Note(time=at(1), topic="storage", message="lost", count=3)
    late = Note(time=at(2), topic="rank", message="rank 1 is missing")
    document = state(contents(opened(), lost, late, lost, ended()))
    assert document["activity"]["run/digits_0"]["provml:note"] == [
        "storage: lost (6 times)",
        "rank: rank 1 is missing",
    ]


def test_a_run_whose_beginning_is_lost_is_called_by_its_folder_and_its_processes() -> None:
    lost = Parameter(time=at(1), key="lr", value=0.1)
    one, again, other = (
        state(contents(lost, directory="digits_0", writers=[writer(rank)])) for rank in (0, 0, 1)
    )
    assert one == again
    assert one["prefix"]["default"] != other["prefix"]["default"]
    assert "run/digits_0" in one["activity"]
