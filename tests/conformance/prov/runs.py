"""Runs made by hand, with fixed times, that every conformance test of PROV states."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from provml_lightning.domain.reading import (
    MetricKey,
    MetricSeries,
    MetricsFile,
    RunContents,
    Writer,
)
from provml_lightning.domain.records import (
    Artifact,
    Commit,
    ContextDeclared,
    Continued,
    Dataset,
    Ended,
    FileDeleted,
    FileUsed,
    FinalMetric,
    FunctionCall,
    Item,
    Model,
    ModelVersion,
    Note,
    Opened,
    Parameter,
    PowerMeasure,
    Record,
    Status,
    StoredFile,
)

SECOND = 10**9
# 2026-01-02T03:04:05Z in nanoseconds since 1970.
START = 1_767_323_045 * SECOND
UUID = "6f1c2f1e-5b0a-4a53-9d0e-0123456789ab"
PARENT = "urn:uuid:0b54d6c2-1f3c-4b57-8d3e-ba9876543210#run/sweep%201_7"
NAMES = ("loss", "a/b", "a:b", "a b", "", ".", "..", "a.", "%41", "~", "~~", "q\"uote's", "é漢😀")


def at(seconds: float) -> int:
    """Return a moment of the run, in seconds after its start."""
    return START + round(seconds * SECOND)


def opened(**changes: Any) -> Opened:
    """Return how the run begins."""
    told: dict[str, Any] = {
        "time": START,
        "experiment": "digits",
        "run_id": "0",
        "uuid": UUID,
        "user": "ann",
        "attributes": {"library_version": "0.1.0", "host_name": "node1", "torch/version": "2.13.0"},
    }
    return Opened(**(told | changes))


def ended(status: Status = Status.COMPLETED, seconds: float = 60, **changes: Any) -> Ended:
    """Return how it ends."""
    return Ended(time=at(seconds), status=status, final=True, **changes)


def stored(path: str, mark: str = "a", **changes: Any) -> StoredFile:
    """Return a file whose digest is one sign, 64 times."""
    return StoredFile(path=path, size=1024, sha256=mark * 64, **changes)


def writer(rank: int = 0, segment: int = 1) -> Writer:
    """Return a process."""
    return Writer(
        rank=rank, segment=segment, host=f"node{rank}", pid=100 + rank, process_start=7, time=START
    )


def metric(key: str, context: str | None = "Training", **changes: Any) -> MetricSeries:
    """Return a metric of three values between seconds 10 and 12."""
    told: dict[str, Any] = {
        "name": MetricKey(key, context, changes.pop("source", None)),
        "unit": "1",
        "rows": 3,
        "first": 1.0,
        "last": 0.25,
        "minimum": 0.25,
        "maximum": 1.0,
        "first_step": 0,
        "last_step": 2,
        "first_time": at(10),
        "last_time": at(12),
        "path": metrics_path(context),
    }
    return MetricSeries(**(told | changes))


def metrics_path(context: str | None) -> str:
    """Return where a context's metrics lie."""
    return f"metrics/{context or '~run'}.parquet"


def contents(*records: Record | tuple[int, Record], **changes: Any) -> RunContents:
    """Return a run that has ended; a record without a rank is rank 0's."""
    ranked = [record if isinstance(record, tuple) else (0, record) for record in records]
    told: dict[str, Any] = {
        "directory": "digits_0",
        "writers": [writer()],
        "records": ranked,
        "series": [],
        "files": [],
        "status": Status.COMPLETED,
        "torn": 0,
    }
    told |= changes
    contexts = dict.fromkeys(series.name.context for series in told["series"])
    told["files"] = told["files"] or [_file(context) for context in contexts]
    return RunContents(**told)


def rich(status: Status = Status.COMPLETED) -> RunContents:
    """Return a run with a record of every kind, on two ranks."""
    error = {"error_type": "ValueError", "error_message": "NaN loss"}
    finish = {
        Status.COMPLETED: [ended()],
        Status.FAILED: [ended(Status.FAILED, **error)],
    }.get(status, [])
    told = [opened(parent=PARENT), (1, opened(time=at(0.5)))]
    series = [metric(key, context) for key in NAMES for context in (None, "Training", "my/own")]
    series += [
        metric("loss", "Validation", last=math.nan, minimum=None, maximum=None),
        metric("power", None, source="nvml.power", unit="W", maximum=math.inf),
        metric("train.step", "fold 1", source="calls", unit="s", last_time=at(38)),
        metric("imported", "Testing", first_time=0, last_time=at(10**9)),
    ]
    return contents(
        *told,
        *_parameters(),
        *_inputs(),
        *_outputs(),
        *_checkpoints(),
        *_nested(),
        Note(time=at(41), topic="storage", message="for 1.5 s the disk took nothing"),
        Note(time=at(42), topic="storage", message="for 1.5 s the disk took nothing"),
        *finish,
        series=series,
        writers=[writer(), writer(1), writer(0, 2)],
        status=status,
        torn=1,
    )


def runs() -> dict[str, RunContents]:
    """Return the runs that every rule is tried on."""
    return {
        "completed": rich(),
        "failed": rich(Status.FAILED),
        "incomplete": rich(Status.INCOMPLETE),
        "empty": contents(opened(), ended(seconds=1)),
        "headless": contents(Parameter(time=START, key="lr", value=0.1)),
        "values only": contents(series=[metric("loss", None), metric("loss")]),
        "nothing": contents(status=Status.INCOMPLETE),
    }


def _parameters() -> list[tuple[int, Record]]:
    values = (
        1,
        1.0,
        0.1,
        True,
        "1",
        2**31,
        -(2**63),
        2**70,
        math.nan,
        math.inf,
        -math.inf,
        "",
        "é",
    )
    when = datetime(2020, 2, 29, 12, tzinfo=UTC)
    told: list[tuple[int, Record]] = [
        (0, Parameter(time=at(1), key=key, value=value))
        for key, value in zip(NAMES, values, strict=True)
    ]
    told += [
        (0, Parameter(time=at(1), key="when", value=when)),
        (0, Parameter(time=at(2), key="lr", value=0.1, context="Training")),
        (1, Parameter(time=at(2.1), key="lr", value=0.1, context="Training")),
        (0, Parameter(time=at(20), key="lr", value=0.01, context="Training")),
        (1, Parameter(time=at(20.1), key="lr", value=0.01, context="Training")),
        (0, Parameter(time=at(2), key="local_rank", value=0)),
        (1, Parameter(time=at(2), key="local_rank", value=1)),
        (0, Parameter(time=at(40), key="score", value=0.9, is_output=True)),
    ]
    return told


def _inputs() -> list[Record]:
    config = stored("artifacts/config.yaml", "c", media_type="application/yaml")
    return [
        Dataset(time=at(3), label="train", context="Training", attributes={"total_samples": 1000}),
        Dataset(time=at(3), label="val", context="Validation", attributes={"total_samples": 100}),
        Dataset(time=at(15), label="train", context="Training", attributes={"total_samples": 1000}),
        Artifact(
            time=at(4),
            name="config",
            stored=config,
            original=stored("/home/ann/config.yaml", "c"),
            is_input=True,
        ),
        Artifact(time=at(4), name="corpus", original=stored("/data/corpus", "d"), is_input=True),
        ModelVersion(
            time=at(5),
            name="net",
            version=0,
            stored=stored("artifacts/net/start.pt", "0"),
            context="Training",
            is_input=True,
        ),
    ]


def _outputs() -> list[Record]:
    folder = stored("artifacts/plots", "f", media_type="inode/directory", files=3)
    versions: list[Record] = [
        ModelVersion(
            time=at(20 + number),
            name="net",
            version=number,
            stored=stored("artifacts/net/last.pt", str(number)),
            context="Training",
            step=100 * number,
            attributes={"score": 0.5 / number},
        )
        for number in (1, 2, 3)
    ]
    return [
        *versions,
        Artifact(time=at(30), name="plots", stored=folder, original=stored("plots", "f")),
        Artifact(time=at(31), name="plots", stored=folder, original=stored("plots", "e"), step=2),
        Artifact(time=at(32), name="table", stored=stored("artifacts/table.csv"), context="my/own"),
        Artifact(time=at(33), name="log", original=stored("/var/log.txt", "9"), is_model=True),
        Model(
            time=at(34),
            name="net",
            stored=stored("artifacts/net/net.pt", "7"),
            layers=stored("artifacts/net/net_layers.json", "8"),
            attributes={"total_params": 2**33, "context": "of the user's"},
        ),
    ]


def _checkpoints() -> list[Record]:
    """Return a training that went on from another run's checkpoint and kept two of its own."""
    told = {"name": "resumed", "context": "Training", "source": "lightning"}
    paths = [f"checkpoints/epoch={number}.ckpt" for number in range(3)]
    read = [stored(path, "e") for path in paths]
    unread = StoredFile(path=paths[2], size=1024)
    return [
        ModelVersion(time=at(6), **told, original=stored("/there/x.ckpt", "5"), is_input=True),
        Continued(
            time=at(6),
            path="/there/x.ckpt",
            namespace="urn:uuid:5d1f0c52-63a0-4b0e-9c40-3a0e4f7d6b11#",
            run="run/digits_7",
            name="digits_7",
            file="version/Training/resumed/4",
        ),
        ModelVersion(time=at(25), **told, stored=read[0], step=1),
        ModelVersion(time=at(26), **told, stored=read[1], step=2),
        FileDeleted(time=at(27), path=paths[0], context="Training", source="lightning"),
        ModelVersion(time=at(28), **told, stored=unread, step=3),
        ModelVersion(time=at(26), **told, stored=read[1], step=2, attributes={"is_best": True}),
        FileUsed(time=at(37), path=paths[1], context="my/own", source="lightning"),
    ]


def _nested() -> list[Record]:
    """Return a part of the training that lasts longer than everything else in it, and its calls."""
    call = {"function": "train.step", "context": "fold 1", "seconds": 0.5}
    error = {"error_type": "ValueError", "error_message": "bad batch"}
    return [
        Commit(time=at(1), commit="0123456789abcdef", branch="main", dirty=False),
        ContextDeclared(time=at(1), context="fold 1", parent="folds", source="kfold"),
        ContextDeclared(time=at(1), context="folds", parent="Training"),
        FunctionCall(time=at(10), **call, arguments={"lr": 0.1}, result="0.5"),
        FunctionCall(time=at(11), **call, **error),
        *_measures(),
        Item(time=at(5), name="x", value=1, value_type="int"),
        Item(time=at(6), name="x", value=1, value_type="int", context="fold 1"),
        Item(time=at(37), name="y", value="é", value_type="str", context="fold 1", is_output=True),
        FinalMetric(time=at(1), metric="loss", initial=0.0, operation="max", value=1.0, rows=3),
        FinalMetric(time=at(1), metric="loss", initial=0.0, operation="my.fold"),
        Artifact(
            time=at(36),
            name="code",
            category="SourceCode",
            is_input=True,
            attributes={
                "repository": "https://example.org/ann/digits",
                "commit": "0123456789abcdef",
            },
        ),
    ]


def _measures() -> list[Record]:
    """Return two measures of one algorithm, the first beyond the run's end by its own clock, and
    one that measured nothing.
    """
    code = {"package": "sklearn", "algorithm": "forêt/3", "step": "training"}
    told = {"data_type": "tabular", "data_shape": "(3, 4)", "algorithm_params": "n=3"}
    measured = {"cpu_energy": 200.0, "cpu_energy_source": "rapl", "energy_consumed": 36.0}
    return [
        PowerMeasure(time=at(7), **code, seconds=1e6, told=told, measured=measured),
        PowerMeasure(time=at(8), **code, seconds=0.5, told=told, measured=measured),
        PowerMeasure(time=at(8), **code, seconds=0.5, error_type="ValueError"),
    ]


def _file(context: str | None) -> MetricsFile:
    return MetricsFile(
        path=metrics_path(context),
        context=context,
        rows=39,
        size=2048,
        sha256="b" * 64,
        media_type="application/vnd.apache.parquet",
    )
