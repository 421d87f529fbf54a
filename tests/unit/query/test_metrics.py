from __future__ import annotations

import json
import math
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from provml_lightning.domain.context import Context
from provml_lightning.errors import (
    AmbiguousMetricError,
    RecordNotFoundError,
    SeriesUnavailableError,
)
from provml_lightning.query import get_metric, list_metric_paths, list_metrics

DTYPES = ["Int64", "Int64", "float64", "datetime64[us, UTC]", "Int64"]


def test_every_answer_has_the_same_columns_and_types(
    own_run: Path, typed_run: Path, embedded: dict[str, Any]
) -> None:
    frames = [
        get_metric(own_run, "metric/Training/loss"),
        get_metric(typed_run, "loss", "Training"),
        get_metric(embedded, "loss"),
    ]
    for frame in frames:
        assert list(frame.columns) == ["step", "epoch", "value", "timestamp", "rank"]
        assert [str(kind) for kind in frame.dtypes] == DTYPES
        assert list(frame.index) == [0, 1, 2]


def test_a_metric_of_ours_comes_back_as_it_was_logged(own_run: Path) -> None:
    frame = get_metric(own_run, "loss", context="Training", source="None")
    assert frame["step"].tolist() == [0, 2, pd.NA]
    assert frame["epoch"].tolist() == [0, pd.NA, 1]
    assert frame["value"].tolist()[:2] == [1.5, math.inf]
    assert math.isnan(frame["value"][2])
    assert frame["timestamp"][0] == datetime(2026, 1, 2, 3, 4, 5, 1, tzinfo=UTC)
    assert frame["rank"].tolist() == [0, 0, 1]


def test_an_answer_can_be_changed_in_place(own_run: Path) -> None:
    frame = get_metric(own_run, "loss", "Training", "None")
    frame.loc[0, ["step", "value"]] = [5, 2.5]
    frame["value"].to_numpy()
    assert (frame["step"][0], frame["value"][0]) == (5, 2.5)


def test_a_part_of_a_name_is_not_the_name(typed_run: Path) -> None:
    assert get_metric(typed_run, "val_loss")["value"].tolist() == [2.5]
    assert get_metric(typed_run, "loss", "TRAINING")["value"][0] == 0.19095942378044128
    with pytest.raises(RecordNotFoundError, match="closest are 'loss'"):
        get_metric(typed_run, "los")


def test_a_source_is_part_of_what_makes_a_metric(own_run: Path) -> None:
    assert get_metric(own_run, "loss", "Training", "nvml")["value"].tolist() == [99.0]
    with pytest.raises(AmbiguousMetricError, match="loss / Training / nvml"):
        get_metric(own_run, "loss", "Training")


def test_several_metrics_that_fit_are_all_named(own_run: Path) -> None:
    with pytest.raises(AmbiguousMetricError) as caught:
        get_metric(own_run, "loss")
    for candidate in ("loss / Training / None", "loss / Training / nvml", "loss / None / None"):
        assert candidate in str(caught.value)


@pytest.mark.parametrize(
    "context", ["Training", "TRAINING", "training", "Context.TRAINING", Context.TRAINING]
)
def test_a_context_is_found_in_any_spelling(
    context: str, typed_run: Path, own_run: Path, embedded: dict[str, Any]
) -> None:
    assert len(get_metric(typed_run, "loss", context)) == 3
    assert len(get_metric(own_run, "loss", context, "nvml")) == 1
    assert len(get_metric(embedded, "loss", context)) == 3


def test_a_name_in_another_context_is_pointed_to(typed_run: Path) -> None:
    with pytest.raises(RecordNotFoundError, match="loss / Training / None, loss / Validation"):
        get_metric(typed_run, "loss", "Testing")


def test_the_documented_form_of_a_name_works_where_nothing_is_called_so(
    typed_run: Path, own_run: Path
) -> None:
    assert len(get_metric(typed_run, "loss_TRAINING_None")) == 3
    assert len(get_metric(typed_run, "loss_Training_None")) == 3
    assert get_metric(own_run, "loss_Training_nvml")["value"].tolist() == [99.0]
    assert get_metric(own_run, "a_Training_None")["value"].tolist() == [-2.0]


def test_no_name_is_enough_where_one_metric_fits(typed_run: Path) -> None:
    with pytest.raises(AmbiguousMetricError):
        get_metric(typed_run)
    with pytest.raises(SeriesUnavailableError, match="cpu_TRAINING_psutil"):
        get_metric(typed_run, source="psutil")


def test_one_counter_is_both_step_and_epoch(typed_run: Path, embedded: dict[str, Any]) -> None:
    for frame in (get_metric(typed_run, "loss", "Training"), get_metric(embedded, "loss")):
        assert frame["step"].tolist() == frame["epoch"].tolist() == [0, 0, 1]
        assert frame["rank"].isna().all()


def test_values_and_times_of_a_csv_are_exact(typed_run: Path) -> None:
    frame = get_metric(typed_run, "loss", "Training")
    assert frame["value"][0] == 0.19095942378044128
    assert math.isnan(frame["value"][1])
    assert frame["value"][2] == math.inf
    assert frame["timestamp"][0] == datetime(2026, 11, 30, 4, 23, 20, 639000, tzinfo=UTC)
    assert frame["timestamp"][2] is pd.NaT


def test_embedded_values_are_numbers_and_never_code(embedded: dict[str, Any]) -> None:
    assert get_metric(embedded, "loss")["value"].tolist()[::2] == [0.5, math.inf]
    embedded["entity"]["loss_Context.TRAINING"]["prov-ml:metric_value_list"] = "[1, exit(), 3]"
    with pytest.raises(ValueError, match=r"exit\(\)"):
        get_metric(embedded, "loss")


def test_a_series_that_was_cut_is_never_presented(embedded: dict[str, Any]) -> None:
    with pytest.raises(SeriesUnavailableError, match="cut to its ends when it was written"):
        get_metric(embedded, "acc")


def test_a_series_that_was_cut_is_read_from_its_file(
    embedded: dict[str, Any], tmp_path: Path
) -> None:
    document = tmp_path / "prov" / "exp_0" / "prov_exp_0.json"
    file = document.parent / "artifacts" / "metrics" / "acc_GR0.csv"
    file.parent.mkdir(parents=True)
    document.write_text(json.dumps(embedded))
    file.write_text("epoch,value,timestep\n0,1.0,1\n1,2.0,2\n")
    assert get_metric(document, "acc")["value"].tolist() == [1.0, 2.0]


def test_a_file_that_is_absent_is_named(untyped: dict[str, Any], tmp_path: Path) -> None:
    document = tmp_path / "prov_exp_0.json"
    document.write_text(json.dumps(untyped))
    with pytest.raises(SeriesUnavailableError, match=r"prov/exp_0/metrics/MSE_Context\.TRAINING"):
        get_metric(document, "MSE", "Training")


def test_a_run_answers_from_anywhere_and_after_it_moved(
    typed_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = Path(shutil.move(typed_run, tmp_path / "elsewhere"))
    monkeypatch.chdir("/")
    assert len(get_metric(moved, "loss", "Training")) == 3
    assert len(get_metric(moved / "prov_exp_GR0_0.json", "loss", "Training")) == 3


def test_a_copied_run_answers_from_its_own_files(typed_run: Path) -> None:
    copy = typed_run.parent / "backup" / "exp_0"
    shutil.copytree(typed_run, copy)
    (copy / "metrics_GR0" / "loss_TRAINING_None_GR0.csv").write_text(
        "epoch,value,timestep\n5,6.0,7\n"
    )
    assert get_metric(copy, "loss", "Training")["value"].tolist() == [6.0]


def test_a_dictionary_is_answered_where_its_paths_hold(
    typed: dict[str, Any], typed_run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(typed_run.parents[1])
    assert len(get_metric(typed, "loss", "Training")) == 3
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SeriesUnavailableError, match="document's path instead of a dictionary"):
        get_metric(typed, "loss", "Training")


def test_a_zip_file_is_answered_as_the_folder_is(
    typed_run: Path, own_run: Path, tmp_path: Path
) -> None:
    for run, name in ((typed_run, "val_loss"), (own_run, "a")):
        archive = shutil.make_archive(str(tmp_path / run.name), "zip", run.parents[1])
        pd.testing.assert_frame_equal(get_metric(archive, name), get_metric(run, name))
        shutil.rmtree(run)


def test_a_link_out_of_the_run_is_not_followed(typed_run: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("epoch,value,timestep\n0,1.0,1\n")
    os.symlink(secret, typed_run / "metrics_GR0" / "loss_VALIDATION_None_GR0.csv")  # noqa: PTH211
    with pytest.raises(SeriesUnavailableError, match="loss_VALIDATION"):
        get_metric(typed_run, "loss", "Validation")


def test_a_path_with_dots_does_not_leave_the_run(own: dict[str, Any], own_run: Path) -> None:
    shutil.move(own_run / "metrics", own_run.parent / "metrics")
    own["entity"]["metric/Training/a"]["dcterms:identifier"] = "../metrics/Training.parquet"
    (own_run / "prov_digits_0.json").write_text(json.dumps(own))
    with pytest.raises(SeriesUnavailableError, match="not there"):
        get_metric(own_run, "a")


def test_our_own_file_is_looked_for_beside_the_document_alone(own_run: Path) -> None:
    shutil.move(own_run / "metrics" / "Training.parquet", own_run / "Training.parquet")
    with pytest.raises(SeriesUnavailableError, match="not there"):
        get_metric(own_run, "a")


def test_metrics_are_listed_with_what_the_document_says_of_them(own_run: Path) -> None:
    table = list_metrics(own_run)
    assert list(table.columns) == [
        "label",
        "context",
        "source",
        "csv_path",
        "id",
        "unit",
        "rows",
        "first",
        "last",
        "min",
        "max",
    ]
    first = table.iloc[0]
    assert first[:7].tolist() == [
        "loss",
        "Training",
        None,
        "metrics/Training.parquet",
        "metric/Training/loss",
        "J",
        3,
    ]
    assert (first["first"], first["min"], first["max"]) == (1.5, 1.5, math.inf)
    assert math.isnan(first["last"])
    assert table["rows"].isna().tolist() == [False, True, True, True, True]
    assert table["context"].tolist() == ["Training", "Training", None, "Training", "Training"]


def test_listed_metrics_can_be_chosen_by_context_and_source(typed_run: Path, own_run: Path) -> None:
    assert list_metrics(typed_run, context="Training")["label"].tolist() == [
        "loss",
        "val_loss",
        "cpu",
    ]
    assert list_metrics(typed_run, source="psutil")["label"].tolist() == ["cpu"]
    assert list_metrics(own_run, "Training", "None")["label"].tolist() == [
        "loss",
        "a_Training_None",
        "a",
    ]


def test_a_document_without_metrics_lists_none() -> None:
    table = list_metrics({"prefix": {}, "entity": {}})
    assert (len(table), table.columns[0]) == (0, "label")
    with pytest.raises(RecordNotFoundError, match="there are none"):
        get_metric({"prefix": {}}, "loss")


def test_two_metrics_under_one_identifier_are_both_listed(untyped: dict[str, Any]) -> None:
    assert list_metrics(untyped)["context"].tolist() == ["Training", "Validation"]
    assert list_metric_paths(untyped) == {
        "MSE_Training_None": "prov/exp_0/metrics/MSE_Context.TRAINING_GR0.nc",
        "MSE_Validation_None": "prov/exp_0/metrics/MSE_Context.VALIDATION_GR0.nc",
    }


def test_a_metric_stated_twice_with_one_file_is_one_metric(
    typed: dict[str, Any], typed_run: Path
) -> None:
    again = typed["entity"]["loss//TRAINING"]
    typed["entity"]["loss//TRAINING"] = [again, again]
    (typed_run / "prov_exp_GR0_0.json").write_text(json.dumps(typed))
    assert len(list_metrics(typed_run)) == 4
    assert len(get_metric(typed_run, "loss", "Training")) == 3


def test_paths_open_from_here_where_the_files_are(typed_run: Path) -> None:
    paths = list_metric_paths(typed_run, file_type="csv")
    assert Path(paths["loss//TRAINING"]).read_text().startswith("epoch,value,timestep")
    assert paths["psutil//cpu//TRAINING"] == "prov/exp_0/metrics_GR0/cpu_TRAINING_psutil_GR0.csv"


@pytest.mark.parametrize(("file_type", "found"), [("nc", 2), ("netcdf", 2), (".NC", 2), ("csv", 0)])
def test_paths_can_be_chosen_by_type(file_type: str, found: int, untyped: dict[str, Any]) -> None:
    assert len(list_metric_paths(untyped, file_type=file_type)) == found


def test_a_metric_without_a_file_has_no_path(embedded: dict[str, Any]) -> None:
    assert list(list_metric_paths(embedded)) == ["acc_Context.TRAINING"]
