"""Small documents of every generation, and runs that hold one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

Row = tuple[str, str | None, str | None, int | None, int | None, float, int, int]


@pytest.fixture
def embedded() -> dict[str, Any]:
    """The oldest generation: values as text inside the document."""
    return {
        "prefix": {"prov-ml": "prov-ml", "default": "www.example.org"},
        "activity": {
            "exp_execution": {"prov-ml:type": "LearningExecution"},
            "epoch_0": {"prov-ml:type": "TrainingExecution"},
            "epoch_0.0": {"prov-ml:type": "TrainingExecution"},
        },
        "entity": {
            "exp": [
                {"prov-ml:type": "LearningStage", "prov-ml:run_id": "3"},
                {"prov-ml:type": "Experiment", "prov-ml:experiment_name": "exp"},
            ],
            "total_params": {"prov-ml:parameter_value": "7850", "prov-ml:type": "Parameter"},
            "loss_Context.TRAINING": {
                "prov-ml:type": "Metric",
                "prov-ml:name": "loss",
                "prov-ml:context": "Context.TRAINING",
                "prov-ml:source": "",
                "prov-ml:metric_epoch_list": "[0.0, 0.0, 1.0]",
                "prov-ml:metric_value_list": "[0.5, nan, inf]",
                "prov-ml:metric_timestamp_list": "[1722514379399, 1722514385576, 1722514391954]",
            },
            "acc_Context.TRAINING": {
                "prov-ml:type": "Metric",
                "prov-ml:name": "acc",
                "prov-ml:context": "Context.TRAINING",
                "prov-ml:source": "custom_metric",
                "prov-ml:metric_epoch_list": "[0, 0, 0, ..., 4, 4, 4]",
                "prov-ml:metric_value_list": "[0.16, 0.12, 0.11, ..., 0.067, 0.07, 0.065]",
                "prov-ml:metric_timestamp_list": "[1, 2, 3, ..., 7, 8, 9]",
                "prov-ml:artifact_uri": "prov/exp_0/artifacts/metrics/acc_GR0.csv",
            },
        },
    }


@pytest.fixture
def untyped() -> dict[str, Any]:
    """The second generation: no types, a file each, two metrics under one identifier."""

    def metric(context: str) -> dict[str, str]:
        return {
            "yProv4ML:label": "MSE",
            "yProv4ML:path": f"prov/exp_0/metrics/MSE_{context}_GR0.nc",
            "yProv4ML:context": context,
            "yProv4ML:source": "None",
        }

    return {
        "prefix": {"context": "context", "yProv4ML": "yProv4ML", "prov-ml": "prov-ml"},
        "activity": {
            "context:exp_0": {"yProv4ML:experiment_dir": "prov/exp_0", "optimizer": "Adam"},
            "context:Context.TRAINING": {"yProv4ML:level": {"$": 1, "type": "xsd:int"}},
        },
        "entity": {
            "train_dataset": {
                "yProv4ML:label": "train_dataset",
                "yProv4ML:path": "",
                "batch_size": {"$": 16, "type": "xsd:int"},
            },
            "weights": {"yProv4ML:path": "prov/exp_0/artifacts/metrics/weights.pt"},
            "MSE": [metric("Context.TRAINING"), metric("Context.VALIDATION")],
        },
    }


def _typed_metric(name: str, context: str, source: str) -> dict[str, str]:
    return {
        "prov:type": "provml:Metric",
        "yprov:context": context,
        "yprov:source": source,
        "prov:label": name,
        "dcterms:identifier": f"prov/exp_0/metrics_GR0/{name}_{context}_{source}_GR0.csv",
    }


def _typed_parameter(name: str, context: str, value: str) -> dict[str, str]:
    return {
        "prov:type": "provml:HyperParameter",
        "prov:label": name,
        "yprov:fullLabel": f"{name}//{context}",
        "prov:value": value,
    }


@pytest.fixture
def typed() -> dict[str, Any]:
    """The third generation: types, a file each, paths relative to a working directory."""
    return {
        "prefix": {"yprov": "https://example.org/y", "provml": "prov-ml", "default": "exp_GR0_0"},
        "activity": {
            "exp_GR0_0": {"yprov:experiment_dir": "prov/exp_0", "yprov:run_id": "0"},
            "TRAINING": {},
            "psutil//TRAINING": {},
        },
        "entity": {
            "lr//TRAINING": _typed_parameter("lr", "TRAINING", "0.001"),
            "optimizer//exp_GR0_0": _typed_parameter("optimizer", "exp_GR0_0", "Adam"),
            "input//exp_GR0_0": [
                _typed_parameter("input", "exp_GR0_0", text) for text in ("1", "4", "9")
            ],
            "final.pt//exp_GR0_0": {
                "prov:type": "provml:Model",
                "prov:label": "final.pt",
                "yprov:final_total_params": {"$": "10", "type": "xsd:int"},
            },
            "loss//TRAINING": _typed_metric("loss", "TRAINING", "None"),
            "val_loss//TRAINING": _typed_metric("val_loss", "TRAINING", "None"),
            "loss//VALIDATION": _typed_metric("loss", "VALIDATION", "None"),
            "psutil//cpu//TRAINING": _typed_metric("cpu", "TRAINING", "psutil"),
        },
    }


@pytest.fixture
def typed_run(tmp_path: Path, typed: dict[str, Any]) -> Path:
    """A folder ``project/prov/exp_0`` with that document and the files of two metrics."""
    run = tmp_path / "project" / "prov" / "exp_0"
    files = run / "metrics_GR0"
    files.mkdir(parents=True)
    (run / "prov_exp_GR0_0.json").write_text(json.dumps(typed))
    (files / "loss_TRAINING_None_GR0.csv").write_text(
        "epoch,value,timestep\n0,0.19095942378044128,1796012600639\n0,nan,1796012600743\n1,inf,\n"
    )
    (files / "val_loss_TRAINING_None_GR0.csv").write_text(
        "epoch;value;timestep\n7;2.5;1796012600639\n"
    )
    return run


_RUN_METRIC = {"prov:type": {"$": "provml:Metric", "type": "prov:QUALIFIED_NAME"}}


@pytest.fixture
def own() -> dict[str, Any]:
    """Our own generation: absolute IRIs, a file a context, paths relative to the document."""

    def parameter(name: str, value: Any, context: str | None = None) -> dict[str, Any]:
        stated = {
            "prov:type": {"$": "provml:HyperParameter", "type": "prov:QUALIFIED_NAME"},
            "prov:label": name,
            "prov:value": value,
        }
        return stated if context is None else stated | {"yprov:context": context}

    return {
        "prefix": {"provml": "https://w3id.org/provml#", "default": "urn:uuid:1#"},
        "activity": {
            "run/digits_0": {
                "prov:type": [
                    {"$": "prov:Activity", "type": "prov:QUALIFIED_NAME"},
                    {"$": "provml:RunExecution", "type": "prov:QUALIFIED_NAME"},
                ],
                "prov:label": "digits_0",
                "provml:started": {"$": "2026-01-02T03:04:05+00:00", "type": "xsd:dateTime"},
            },
            "context/Training": {"prov:label": "Training"},
            "context/my%2fown": {"prov:label": "my/own"},
        },
        "entity": {
            "param/~/seed": parameter("seed", {"$": "4294967296", "type": "xsd:long"}),
            "param/Training/lr": parameter("lr", 0.1, "Training"),
            "param/Training/lr/2": parameter("lr", 0.01, "Training"),
            "param/Validation/lr": parameter("lr", 0.5, "Validation"),
            "param/my%2fown/depth": parameter("depth", 3, "my/own"),
            "metric/Training/loss": _RUN_METRIC
            | {
                "prov:label": "loss",
                "yprov:context": "Training",
                "dcterms:identifier": "metrics/Training.parquet",
                "provml:unit": "J",
                "provml:rows": 3,
                "provml:first": 1.5,
                "provml:last": {"$": "NaN", "type": "xsd:double"},
                "provml:min": 1.5,
                "provml:max": {"$": "INF", "type": "xsd:double"},
            },
            "metric/Training/loss/nvml": _RUN_METRIC
            | {
                "prov:label": "loss",
                "yprov:context": "Training",
                "yprov:source": "nvml",
                "dcterms:identifier": "metrics/Training.parquet",
            },
            "metric/~/loss": _RUN_METRIC
            | {"prov:label": "loss", "dcterms:identifier": "metrics/~run.parquet"},
            "metric/Training/a_Training_None": _RUN_METRIC
            | {
                "prov:label": "a_Training_None",
                "yprov:context": "Training",
                "dcterms:identifier": "metrics/Training.parquet",
            },
            "metric/Training/a": _RUN_METRIC
            | {
                "prov:label": "a",
                "yprov:context": "Training",
                "dcterms:identifier": "metrics/Training.parquet",
            },
        },
    }


@pytest.fixture
def write_metrics() -> Callable[..., None]:
    """Write a metrics file as the design says it looks; times are µs since 1970."""

    def write(path: Path, rows: Sequence[Row], **options: Any) -> None:
        names = ("metric", "context", "source", "step", "epoch", "value", "timestamp", "rank")
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        types = {
            **dict.fromkeys(names[:3], pa.string()),
            "step": pa.int64(),
            "epoch": pa.int64(),
            "value": pa.float64(),
            "timestamp": pa.timestamp("us", "UTC"),
            "rank": pa.int32(),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table({name: pa.array(columns[name], types[name]) for name in names})
        pq.write_table(table, path, **options)

    return write


@pytest.fixture
def own_run(tmp_path: Path, own: dict[str, Any], write_metrics: Callable[..., None]) -> Path:
    """A run's folder with that document and the metrics of one context."""
    run = tmp_path / "prov" / "digits_0"
    start = int(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()) * 1_000_000
    write_metrics(
        run / "metrics" / "Training.parquet",
        [
            ("a", "Training", None, 0, 0, -1.0, start, 0),
            ("a_Training_None", "Training", None, 0, 0, -2.0, start, 0),
            ("loss", "Training", None, 0, 0, 1.5, start + 1, 0),
            ("loss", "Training", None, 2, None, float("inf"), start + 2, 0),
            ("loss", "Training", None, None, 1, float("nan"), start + 3, 1),
            ("loss", "Training", "nvml", 9, 9, 99.0, start + 4, 0),
            ("val_loss", "Training", None, 1, 1, 77.0, start + 5, 0),
        ],
        row_group_size=2,
    )
    (run / "prov_digits_0.json").write_text(json.dumps(own))
    return run
