"""Artifacts, models and their versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from provml_lightning.domain.records import Artifact, Dataset, Model, ModelVersion
from tests.conformance.prov.runs import at, stored

if TYPE_CHECKING:
    from collections.abc import Callable

    States = Callable[..., Any]

RUN = "run/digits_0"
TRAINING = "context/Training"


def version(seconds: float, number: int | None = None, **changes: Any) -> ModelVersion:
    told: dict[str, Any] = {"name": "net", "context": "Training"}
    told["stored"] = stored(f"artifacts/net/{seconds}.pt", str(int(seconds) % 10))
    return ModelVersion(time=at(seconds), version=number, **(told | changes))


def derivations(stated: Any) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = stated.relations(
        "wasDerivedFrom", "generatedEntity", "usedEntity"
    )
    return found


def test_a_copy_is_derived_from_what_the_caller_pointed_to(states: States) -> None:
    copy, original = stored("artifacts/c.yaml", "c"), stored("/home/ann/c.yaml", "c")
    stated = states(
        Artifact(time=at(1), name="c.yaml", stored=copy, original=original, is_input=True)
    )
    assert stated.entities["artifact/~~/c.yaml"] == {
        "prov:type": {"$": "provml:Artifact", "type": "prov:QUALIFIED_NAME"},
        "prov:label": "c.yaml",
        "dcterms:identifier": "artifacts/c.yaml",
        "dcterms:format": "application/octet-stream",
        "yprov:file_size": 1024,
        "provml:sha256": "c" * 64,
    }
    assert stated.entities["original/~~/c.yaml"]["dcterms:identifier"] == "/home/ann/c.yaml"
    assert stated.relations("used", "activity", "entity") == [(RUN, "original/~~/c.yaml")]
    assert stated.relations("wasGeneratedBy", "entity", "activity", "role") == [
        ("artifact/~~/c.yaml", RUN, "copy")
    ]
    assert derivations(stated) == [("artifact/~~/c.yaml", "original/~~/c.yaml")]


def test_an_output_that_was_copied_was_made_by_its_context_and_copied_by_the_run(
    states: States,
) -> None:
    copy, original = stored("artifacts/plot.png"), stored("plot.png")
    stated = states(
        Artifact(time=at(1), name="plot", stored=copy, original=original, context="Training")
    )
    assert stated.relations("wasGeneratedBy", "entity", "activity", "role") == [
        ("artifact/Training/plot", RUN, "copy"),
        ("original/Training/plot", TRAINING, "output"),
    ]


@pytest.mark.parametrize(("is_input", "relation"), [(True, "used"), (False, "wasGeneratedBy")])
def test_a_file_that_was_not_copied_is_one_entity(
    states: States, is_input: bool, relation: str
) -> None:
    stated = states(
        Artifact(time=at(1), name="d", original=stored("/data/d"), is_input=is_input, step=7)
    )
    assert list(stated.entities) == ["artifact/~~/d"]
    assert stated.entities["artifact/~~/d"]["provml:step"] == 7
    assert stated.relations(relation, "activity", "entity") == [(RUN, "artifact/~~/d")]


def test_what_is_known_wins_over_what_the_user_says(states: States) -> None:
    facts = {"step": 9, "file_size": 0, "sha256": "mine", "context": "mine", "score": 0.5}
    stated = states(
        Artifact(time=at(1), name="a", stored=stored("artifacts/a"), step=7, attributes=facts)
    )
    told = stated.entities["artifact/~~/a"]
    assert (told["provml:step"], told["yprov:file_size"], told["provml:sha256"]) == (
        7,
        1024,
        "a" * 64,
    )
    assert told["provml:score"] == 0.5


def test_a_folder_says_how_many_files_it_holds(states: States) -> None:
    folder = stored("artifacts/plots", media_type="inode/directory", files=3)
    stated = states(Artifact(time=at(1), name="plots", stored=folder))
    told = stated.entities["artifact/~~/plots"]
    assert (told["provml:files"], told["dcterms:format"]) == (3, "inode/directory")


def test_an_artifact_that_was_kept_again_is_a_revision(states: States) -> None:
    told = [
        Artifact(time=at(step), name="plot", stored=stored(f"artifacts/{step}.png"), step=step)
        for step in (1, 2)
    ]
    stated = states(*told)
    assert derivations(stated) == [("artifact/~~/plot~2", "artifact/~~/plot")]
    assert "wasInvalidatedBy" not in stated.document


def test_an_input_and_an_output_of_one_name_are_two_things(states: States) -> None:
    file = stored("artifacts/w.pt")
    told = [
        Artifact(time=at(1), name="w", stored=file, is_input=is_input) for is_input in (True, False)
    ]
    stated = states(*told)
    assert stated.relations("used", "entity") == [("artifact/~~/w",)]
    assert stated.relations("wasGeneratedBy", "entity") == [("artifact/~~/w~2",)]
    assert "wasDerivedFrom" not in stated.document


def test_an_output_that_was_told_twice_alike_was_made_once(states: States) -> None:
    told = [Model(time=at(seconds), name="net", stored=stored("net.pt")) for seconds in (1, 2)]
    assert states(*told).relations("wasGeneratedBy", "entity") == [("model/~~/net",)]


def test_a_models_layers_are_derived_from_it(states: States) -> None:
    model = Model(
        time=at(1),
        name="net",
        stored=stored("artifacts/net/net.pt"),
        layers=stored("artifacts/net/net_layers.json"),
        attributes={"total_params": 10},
    )
    stated = states(model)
    assert stated.entities["model/~~/net"]["provml:total_params"] == 10
    assert stated.entities["layers/~~/net"]["prov:label"] == "net_layers.json"
    assert derivations(stated) == [("layers/~~/net", "model/~~/net")]


def test_each_version_is_derived_from_the_one_before(states: States) -> None:
    stated = states(version(1, 0, step=100), version(2, 1, step=200), version(3, 5, step=300))
    first = stated.entities["version/Training/net/0"]
    assert (first["prov:label"], first["provml:model"]) == ("net_0", "net")
    assert (first["provml:version"], first["provml:step"]) == (0, 100)
    assert derivations(stated) == [
        ("version/Training/net/1", "version/Training/net/0"),
        ("version/Training/net/5", "version/Training/net/1"),
    ]


def test_a_version_whose_origins_are_told_comes_from_these_alone(states: States) -> None:
    def data(seconds: float, label: str, source: str | None = "lightning") -> Dataset:
        return Dataset(time=at(seconds), label=label, context="Training", source=source)

    stated = states(
        data(0.1, "one"),
        data(0.2, "two"),
        version(1, 0, derived=[at(0.1)]),
        version(2, 1, derived=[], is_trained=False),
        data(2.5, "by hand", None),
        version(3, 2, derived=[at(1), at(0.2)]),
        version(4, 3),
        version(5, 4, derived=[at(2)], is_trained=False),
        version(6, 5, derived=[at(99)]),
    )
    numbers = {f"version/Training/net/{number}": number for number in range(6)}
    told = [(numbers[made], numbers.get(source, source)) for made, source in derivations(stated)]
    assert told == [
        (0, "dataset/Training/one/lightning"),
        (2, 0),
        (2, "dataset/Training/two/lightning"),
        (2, "dataset/Training/by%20hand"),
        (3, 2),
        (4, 1),
    ]


def test_versions_without_a_number_are_counted_on(states: States) -> None:
    stated = states(version(1), version(2), version(3, 7), version(4))
    assert [one["provml:version"] for one in stated.entities.values()] == [0, 1, 7, 8]


def test_a_version_that_was_loaded_is_used_and_the_next_comes_from_it(states: States) -> None:
    stated = states(version(1, 0, is_input=True), version(2, 1))
    assert stated.relations("used", "activity", "entity") == [(TRAINING, "version/Training/net/0")]
    assert derivations(stated) == [("version/Training/net/1", "version/Training/net/0")]


def test_a_version_is_derived_from_the_training_data_seen_since_the_one_before(
    states: States,
) -> None:
    def data(seconds: float, label: str, context: str | None) -> Dataset:
        return Dataset(time=at(seconds), label=label, context=context)

    stated = states(
        data(1, "train", "Training"),
        data(1, "val", "Validation"),
        data(1, "unknown", None),
        version(2, 0),
        data(3, "more", "Training"),
        version(4, 1),
        version(5, 2),
        data(6, "late", "Training"),
    )
    assert derivations(stated) == [
        ("version/Training/net/0", "dataset/Training/train"),
        ("version/Training/net/1", "version/Training/net/0"),
        ("version/Training/net/1", "dataset/Training/more"),
        ("version/Training/net/2", "version/Training/net/1"),
    ]


def test_a_file_that_was_overwritten_is_no_more(states: States) -> None:
    told = [
        version(seconds, stored=stored("artifacts/net/last.pt", str(seconds)))
        for seconds in (1, 2, 3)
    ]
    assert states(*told).relations("wasInvalidatedBy", "entity", "activity", "time") == [
        ("version/Training/net/0", TRAINING, "2026-01-02T03:04:07.000000+00:00"),
        ("version/Training/net/1", TRAINING, "2026-01-02T03:04:08.000000+00:00"),
    ]


def test_a_file_with_the_same_bytes_stays(states: States) -> None:
    same = stored("artifacts/net/last.pt")
    told = [version(seconds, stored=same) for seconds in (1, 2)]
    assert "wasInvalidatedBy" not in states(*told).document


def test_a_file_that_was_used_after_another_took_its_place_is_not_said_to_be_gone(
    states: States,
) -> None:
    path = "artifacts/w.pt"
    told = [
        Artifact(time=at(1), name="w", stored=stored(path, "1"), is_input=True),
        Artifact(time=at(2), name="v", stored=stored(path, "2")),
        Artifact(time=at(3), name="w", stored=stored(path, "1"), is_input=True),
    ]
    assert "wasInvalidatedBy" not in states(*told).document
