"""What became of files: used again, deleted, and made by another run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provml_lightning.domain.records import (
    Continued,
    Dataset,
    FileDeleted,
    FileUsed,
    ModelVersion,
)
from tests.conformance.prov.runs import at, stored

if TYPE_CHECKING:
    from collections.abc import Callable

    States = Callable[..., Any]

TRAINING = "context/Training"
THERE = "urn:uuid:0b54d6c2-1f3c-4b57-8d3e-ba9876543210#"


def version(seconds: float, path: str, **changes: Any) -> ModelVersion:
    told: dict[str, Any] = {"name": "net", "context": "Training", "stored": stored(path)}
    return ModelVersion(time=at(seconds), **(told | changes))


def test_a_version_told_again_with_its_time_is_the_same_version_of_which_more_is_known(
    states: States,
) -> None:
    unread = stored("checkpoints/a.ckpt")
    unread = type(unread)(path=unread.path, size=unread.size)
    stated = states(
        version(1, "", stored=unread),
        version(2, "checkpoints/b.ckpt"),
        version(1, "checkpoints/a.ckpt", attributes={"is_best": True}),
    )
    assert list(stated.entities) == ["version/Training/net/0", "version/Training/net/1"]
    first = stated.entities["version/Training/net/0"]
    assert (first["provml:sha256"], first["provml:is_best"]) == ("a" * 64, True)


def test_a_file_that_was_not_read_has_no_digest(states: States) -> None:
    unread = type(stored("a"))(path="a.ckpt", size=7)
    entity = states(version(1, "", stored=unread)).entities["version/Training/net/0"]
    assert entity["yprov:file_size"] == 7
    assert "provml:sha256" not in entity


def test_a_version_that_lies_elsewhere_is_told_by_its_path_there(states: States) -> None:
    stated = states(version(1, "", stored=None, original=stored("/scratch/a.ckpt", "e")))
    entity = stated.entities["version/Training/net/0"]
    assert entity["dcterms:identifier"] == "/scratch/a.ckpt"
    assert entity["provml:sha256"] == "e" * 64


def test_a_deleted_file_is_invalidated_by_its_context_at_its_time(states: States) -> None:
    stated = states(
        version(1, "a.ckpt"),
        version(2, "b.ckpt"),
        FileDeleted(time=at(3), path="a.ckpt", context="Training"),
    )
    assert stated.relations("wasInvalidatedBy", "entity", "activity", "time") == [
        ("version/Training/net/0", TRAINING, "2026-01-02T03:04:08.000000+00:00")
    ]
    assert "version/Training/net/0" in stated.entities


def test_a_path_that_is_used_again_keeps_the_fates_of_its_files_apart(states: States) -> None:
    stated = states(
        version(1, "last.ckpt"),
        FileDeleted(time=at(2), path="last.ckpt", context="Training"),
        FileDeleted(time=at(3), path="last.ckpt", context="Training"),
        version(4, "last.ckpt"),
        FileDeleted(time=at(5), path="last.ckpt", context="Training"),
        FileDeleted(time=at(6), path="never.ckpt", context="Training"),
    )
    assert stated.relations("wasInvalidatedBy", "entity", "time") == [
        ("version/Training/net/0", "2026-01-02T03:04:07.000000+00:00"),
        ("version/Training/net/1", "2026-01-02T03:04:10.000000+00:00"),
    ]


def test_a_checkpoint_that_is_tested_is_used_by_the_test_and_made_once(states: States) -> None:
    stated = states(
        version(1, "a.ckpt"),
        version(2, "b.ckpt"),
        FileUsed(time=at(3), path="a.ckpt", context="Testing"),
    )
    assert stated.relations("used", "activity", "entity", "time") == [
        ("context/Testing", "version/Training/net/0", "2026-01-02T03:04:08.000000+00:00")
    ]
    assert len(stated.document["wasGeneratedBy"]) == 2


def test_the_next_version_comes_from_the_one_that_the_training_went_back_to(
    states: States,
) -> None:
    stated = states(
        version(1, "a.ckpt"),
        version(2, "b.ckpt"),
        FileUsed(time=at(3), path="a.ckpt", context="Training"),
        FileUsed(time=at(3.5), path="b.ckpt", context="Testing"),
        version(4, "c.ckpt"),
        version(5, "d.ckpt"),
    )
    assert stated.relations("wasDerivedFrom", "generatedEntity", "usedEntity") == [
        ("version/Training/net/1", "version/Training/net/0"),
        ("version/Training/net/2", "version/Training/net/0"),
        ("version/Training/net/3", "version/Training/net/2"),
    ]


def test_a_run_that_went_on_from_anothers_file_is_informed_by_it_under_its_own_iri(
    states: States,
) -> None:
    there = {"namespace": THERE, "run": "run/digits_3", "name": "digits_3"}
    told = Continued(time=at(2), path="/there/a.ckpt", file="version/Training/net/4", **there)
    stated = states(
        version(2, "", stored=None, original=stored("/there/a.ckpt"), is_input=True),
        told,
        told,
        Dataset(time=at(3), label="train", context="Training"),
        version(4, "b.ckpt"),
        Continued(
            time=at(5), path="/elsewhere.ckpt", namespace="https://e.org/", run="run/x_1", name="x"
        ),
    )
    assert stated.document["prefix"]["origin"] == THERE
    assert stated.document["prefix"]["origin2"] == "https://e.org/"
    assert stated.activities["origin:run/digits_3"] == {"prov:label": "digits_3"}
    informed = stated.relations("wasInformedBy", "informed", "informant")
    assert informed[-2:] == [
        ("run/digits_0", "origin:run/digits_3"),
        ("run/digits_0", "origin2:run/x_1"),
    ]
    assert stated.relations("wasDerivedFrom", "generatedEntity", "usedEntity") == [
        ("version/Training/net/1", "version/Training/net/0"),
        ("version/Training/net/1", "dataset/Training/train"),
        ("version/Training/net/0", "origin:version/Training/net/4"),
    ]
