"""Documents that users of the nearest peer have, read where they are at hand.

They are data of others and no part of the project: ``PROVML_PEER_DOCUMENTS`` names their folder.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from provml_lightning.errors import SeriesUnavailableError
from provml_lightning.query import (
    get_metric,
    get_parameter,
    list_activities,
    list_entities,
    list_metric_paths,
    list_metrics,
    list_parameters,
    list_provjson_in_proj,
    list_runs_in_proj,
)

BESIDE = Path(__file__).parents[2].parent / "shared" / "data" / "peer_documents"
FOLDER = Path(os.environ.get("PROVML_PEER_DOCUMENTS", BESIDE))

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the peer's documents are not here")


def test_values_embedded_as_lists() -> None:
    document = FOLDER / "a_embedded_lists.json"
    assert len(list_activities(document)) == 4
    assert len(list_metrics(document)) == len(list_entities(document, "provml:Metric")) == 18
    for context in ("Context.TRAINING", "Training"):
        frame = get_metric(document, "gpu_usage", context=context)
        assert frame["value"].tolist() == [0.0] * 15
        assert frame["epoch"].tolist() == [0] * 15
    assert list_entities(document).count("3B_2N") == 1
    assert get_parameter(document, "3B_2N", "run_id") == "0"
    assert get_parameter(document, "3B_2N", "experiment_name") == "3B_2N"


def test_epochs_that_are_floats() -> None:
    document = FOLDER / "a_float_epochs.json"
    activities = list_activities(document)
    assert len(activities) == 18
    assert {"epoch_0", "epoch_0.0"} <= set(activities)
    assert len(list_metrics(document)) == 18
    frame = get_metric(document, "Loss", context="Context.VALIDATION")
    assert frame["epoch"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert frame["value"][0] == 0.0710896253585815


def test_lists_that_were_cut() -> None:
    document = FOLDER / "a_elided_lists.json"
    assert len(list_metrics(document)) == 7
    with pytest.raises(SeriesUnavailableError, match="cut to its ends when it was written"):
        get_metric(document, "MSE_train")


def test_metrics_without_a_type() -> None:
    document = FOLDER / "b_metric_files.json"
    assert len(list_activities(document)) == 8
    assert len(list_entities(document)) == 18
    assert get_parameter(document, "train_dataset", "train_dataset_stat_batch_size") == 16
    names = list_metrics(document)["label"].tolist()
    assert len(set(names)) == len(list_entities(document, "provml:Metric")) == 8
    contexts = list_metrics(document).query("label == 'MSE'")["context"].tolist()
    assert contexts == ["Training", "Validation"]
    assert len(list_metric_paths(document)) == 9
    for context in ("TRAINING", "VALIDATION"):
        path = f"prov/MetricsType.NETCDF_False_0/metrics/MSE_Context.{context}_GR0.nc"
        with pytest.raises(SeriesUnavailableError, match=path):
            get_metric(document, "MSE", context=context)


def test_a_run_with_csv_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = FOLDER / "c_csv_run" / "csv_False_0"
    (document,) = run.glob("prov_*.json")
    assert len(list_activities(document)) == 4
    assert len(list_metrics(document)) == 18
    shutil.copytree(run, tmp_path / "project" / "prov" / "csv_False_0")
    monkeypatch.chdir(tmp_path / "project")
    copy = Path("prov", "csv_False_0", document.name)
    for source in (run, document, copy, json.loads(document.read_text())):
        frame = get_metric(source, "Loss", context="Training")
        assert len(frame) == 40
        assert (frame["value"][0], frame["step"][0]) == (0.19095942378044128, 0)
        assert len(get_metric(source, "Loss", context="Validation")) == 8


def test_identifiers_that_repeat() -> None:
    run = FOLDER / "c_repeated_ids"
    told = list_parameters(run)
    assert told["input"] == [str(number) for number in range(1, 10)]
    assert told["output"] == [str(number * number) for number in range(1, 10)]
    assert len(list_entities(run)) == 7
    assert len(list_entities(run, "provml:HyperParameter")) == 3
    assert list_metrics(run).empty
    assert list_metric_paths(run) == {}


def test_runs_among_them() -> None:
    runs = list_runs_in_proj(FOLDER)
    assert [run.name for run in runs] == ["csv_False_0", "c_repeated_ids"]
    assert [path.parent for path in list_provjson_in_proj(FOLDER)] == runs
