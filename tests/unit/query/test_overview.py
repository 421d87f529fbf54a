from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest

import prov4ml
from provml_lightning.domain.records import Status
from provml_lightning.errors import RecordNotFoundError
from provml_lightning.query.overview import read_overview
from provml_lightning.query.places import require_own_run, require_run

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
