from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest

import prov4ml
from provml_lightning.domain.measured import Total
from provml_lightning.domain.power_measure import PowerMeasure
from provml_lightning.domain.records import (
    ContextDeclared,
    Continued,
    FileDeleted,
    ModelVersion,
    Status,
)
from provml_lightning.errors import RecordNotFoundError
from provml_lightning.provenance.statement import state
from provml_lightning.query.overview import read_overview
from provml_lightning.query.places import require_own_run, require_run
from tests.conformance.prov.runs import at, contents, ended, opened, stored

if TYPE_CHECKING:
    from pathlib import Path


def test_a_run_of_ours_says_who_where_when_and_what(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("12345")
    with prov4ml.start_run("digits", provenance_save_dir=tmp_path / "prov"):
        prov4ml.log_param("lr", 0.1, context="Training")
        prov4ml.log_param("lr", 0.2, context="Training")
        prov4ml.log_artifact("data", str(tmp_path / "data.txt"))
        prov4ml.log_metric("loss", 2.0, "Training", step=1)
        prov4ml.log_metric("loss", 1.0, "Training", step=2)

    seen = read_overview(tmp_path / "prov" / "digits_0")

    assert (seen.head.experiment, seen.head.run_id, seen.head.status) == (
        "digits", "0", Status.COMPLETED,
    )  # fmt: skip
    assert seen.head.settled
    assert seen.head.duration is not None
    assert 0 < seen.head.duration < 60
    assert seen.ranks == (0,)
    assert seen.library is not None
    assert seen.library.startswith("provml-lightning ")
    (lr,) = seen.parameters
    assert (lr.name, lr.context, lr.values) == ("lr", "Training", (0.1, 0.2))
    (loss,) = seen.metrics
    assert (loss.rows, loss.first, loss.last, loss.min, loss.max) == (2, 2.0, 1.0, 1.0, 2.0)
    assert {one.name: one.size for one in seen.artifacts}["data"] == 5
    assert len([one for one in seen.artifacts if one.name == "data"]) == 1
    assert "run.json" in {file.path for file in seen.files}


def test_a_document_with_types_says_what_it_knows(typed_run: Path) -> None:
    seen = read_overview(typed_run)

    assert (seen.head.run_id, seen.head.status, seen.head.started) == ("0", None, None)
    assert {(one.name, one.context): one.values for one in seen.parameters} == {
        ("lr", "Training"): ("0.001",),
        ("optimizer", None): ("Adam",),
        ("input", None): ("1", "4", "9"),
    }
    rows = {(one.name, one.context): one.rows for one in seen.metrics}
    assert rows == {
        ("loss", "Training"): 3,
        ("val_loss", "Training"): 1,
        ("loss", "Validation"): None,
        ("cpu", "Training"): None,
    }
    (model,) = seen.models
    assert (model.name, model.facts) == ("final.pt", {"total_params": 10})


def test_a_document_with_embedded_values_is_summarised_from_them(embedded: dict[str, Any]) -> None:
    embedded["entity"]["execution_start_time"] = {
        "prov-ml:parameter_value": "1722514285.5",
        "prov-ml:type": "Parameter",
    }

    seen = read_overview(embedded)

    assert (seen.head.experiment, seen.head.run_id) == ("exp", "3")
    assert seen.head.started == datetime(2024, 8, 1, 12, 11, 25, 500_000, tzinfo=UTC)
    loss = next(one for one in seen.metrics if one.name == "loss")
    assert (loss.rows, loss.first, loss.last) == (3, 0.5, float("inf"))
    assert next(one for one in seen.metrics if one.name == "acc").rows is None
    assert seen.files == ()


def test_a_document_without_types_has_data_sets_by_their_statistics(
    untyped: dict[str, Any],
) -> None:
    untyped["entity"]["train_dataset"]["train_dataset_stat_total_samples"] = {
        "$": 5, "type": "xsd:int",
    }  # fmt: skip

    seen = read_overview(untyped)

    (data,) = seen.datasets
    assert (data.name, data.facts["total_samples"]) == ("train_dataset", 5)
    assert [one.name for one in seen.artifacts] == ["weights"]


def test_an_archive_has_the_files_of_its_run(typed: dict[str, Any], tmp_path: Path) -> None:
    with ZipFile(tmp_path / "run.zip", "w") as archive:
        archive.writestr("exp_0/prov_exp_0.json", json.dumps(typed))
        archive.writestr("exp_0/artifacts/a.txt", "123")
        archive.writestr("other.txt", "4")

    files = {file.path: file.size for file in read_overview(tmp_path / "run.zip").files}

    assert set(files) == {"prov_exp_0.json", "artifacts/a.txt"}
    assert files["artifacts/a.txt"] == 3


def test_a_document_that_lies_among_others_has_no_files(
    typed: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "prov_a.json").write_text(json.dumps(typed))
    (tmp_path / "private.txt").write_text("1")

    assert read_overview(tmp_path / "prov_a.json").files == ()


def test_a_path_that_is_no_run_names_the_closest(typed_run: Path, tmp_path: Path) -> None:
    assert require_run(typed_run) == typed_run
    with pytest.raises(RecordNotFoundError, match=r"the closest are .*exp_0"):
        require_run(typed_run.with_name("epx_0"))
    with pytest.raises(RecordNotFoundError, match=r"runs lie below it, such as .*exp_0"):
        require_run(typed_run.parent)
    with pytest.raises(RecordNotFoundError, match="no run lies below it"):
        require_run(typed_run / "metrics_GR0")
    with pytest.raises(RecordNotFoundError, match="no journal"):
        require_own_run(typed_run)
    with prov4ml.start_run("own", provenance_save_dir=tmp_path):
        pass
    own = tmp_path / "own_0"
    assert require_own_run(own / "prov_own_0.json") == own


def test_the_contexts_of_a_run_say_when_they_were_and_what_they_cost() -> None:
    declared = [ContextDeclared(time=at(second), context="Training") for second in (2, 12)]
    costs = [
        Total(quantity="energy", context="Training", amount=110.5, unit="J", source="rapl"),
        Total(quantity="emissions", context="Training", amount=0.25, unit="gCO2eq", source="rapl"),
    ]

    seen = read_overview(state(contents(opened(), *declared, ended(), totals=costs)))

    (training,) = seen.stages
    assert training.name == "Training"
    assert training.started == datetime(2026, 1, 2, 3, 4, 7, tzinfo=UTC)
    assert training.duration == 10
    assert {one.name: (one.amount, one.unit, one.source) for one in training.costs} == {
        "energy": (110.5, "J", "rapl"),
        "emissions": (0.25, "gCO2eq", "rapl"),
    }


def test_a_document_of_another_tool_has_no_stages(typed: dict[str, Any]) -> None:
    assert read_overview(typed).stages == ()


def test_a_version_whose_file_was_deleted_stands_behind_the_others() -> None:
    told = {"name": "net", "context": "Training"}
    first = ModelVersion(time=at(1), stored=stored("a.ckpt", "a"), **told)
    second = ModelVersion(
        time=at(2), stored=stored("b.ckpt", "b"), attributes={"is_best": True, "score": 0.5}, **told
    )
    gone = FileDeleted(time=at(3), path="a.ckpt", context="Training")

    seen = read_overview(state(contents(opened(), first, second, gone, ended())))

    assert [(one.path, one.deleted) for one in seen.models] == [
        ("b.ckpt", False),
        ("a.ckpt", True),
    ]
    assert seen.models[0].facts["is_best"] is True
    assert seen.models[0].facts["score"] == 0.5


def test_a_run_that_went_on_from_others_names_them() -> None:
    there = [
        Continued(
            time=at(1), path=f"/{name}.ckpt", namespace=f"https://{name}.org/#", run="r", name=name
        )
        for name in ("one_3", "other_1")
    ]

    seen = read_overview(state(contents(opened(), *there, ended())))

    assert seen.continues == ("one_3", "other_1")


def test_a_run_inside_another_does_not_continue_it() -> None:
    inside = opened(parent="urn:uuid:0b54d6c2-1f3c-4b57-8d3e-ba9876543210#run/sweep_7")

    assert read_overview(state(contents(inside, ended()))).continues == ()


def test_a_measure_says_what_ran_and_what_that_cost() -> None:
    measure = PowerMeasure(
        time=at(1),
        package="sklearn: trees",
        algorithm="forest: small",
        step="training",
        seconds=2.5,
        measured={"energy_consumed": 12.5, "emissions": 0.125, "cpu_energy_source": "rapl"},
    )
    unknown = PowerMeasure(time=at(5), package="numpy", algorithm="svd", step="", seconds=1.0)

    forest, svd = read_overview(state(contents(opened(), measure, unknown, ended()))).measures

    assert (forest.package, forest.algorithm, forest.step) == (
        "sklearn: trees", "forest: small", "training",
    )  # fmt: skip
    assert (forest.seconds, forest.energy, forest.emissions) == (2.5, 12.5, 0.125)
    assert forest.facts["cpu_energy_source"] == "rapl"
    assert (svd.package, svd.energy, svd.emissions) == ("numpy", None, None)


@pytest.mark.parametrize("odd", [7, [], {"_:1": 7}, {"_:1": {}}, {"_:1": [None]}])
def test_a_relation_without_a_shape_is_passed_over(typed: dict[str, Any], odd: object) -> None:
    typed |= {"wasInvalidatedBy": odd, "wasInformedBy": odd, "used": odd}

    assert [one.deleted for one in read_overview(typed).models] == [False]
