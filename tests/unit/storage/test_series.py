"""Names, contexts and sources through the whole way of a value: log, metrics file, table."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provml_lightning.domain.metric_names import metric_key
from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.records import Opened
from provml_lightning.runtime.run import Run
from provml_lightning.runtime.snapshot import write_first_index
from provml_lightning.storage.layout import RunLayout
from provml_lightning.storage.series import read_series

TRICKY = [
    "", " ", "a", "A", "a/b", "a%2fb", "a\0", "\0", "é", "e\u0301", "\u202e", "\U0001f600", "None",
    "x" * 5000, "x" * 5000 + "y", "Training", "training", "~", "~run", "=", "a=b", "$float", '"',
]  # fmt: skip
TEXT = st.sampled_from(TRICKY) | st.text(max_size=12)


def _key(name: tuple[str, str | None, str | None]) -> MetricKey:
    return metric_key(*name)


NAMES = st.lists(
    st.tuples(TEXT, st.none() | TEXT, st.none() | TEXT),
    min_size=2,
    max_size=8,
    unique_by=_key,
)


def _run(folder: Path) -> Run:
    (folder / "run").mkdir()
    opened = Opened(time=1, experiment="e", run_id="0", uuid="u", user="me")
    layout = RunLayout(folder / "run")
    run = Run(layout, opened, rank=0, waiting=100, strict=True)
    write_first_index(layout, opened, {})
    return run


def _values(run: Run, name: MetricKey) -> list[float]:
    values: list[float] = read_series(run.layout, name)["value"].to_pylist()
    return values


@settings(max_examples=15)
@given(NAMES)
def test_different_names_keep_their_own_values(
    names: list[tuple[str, str | None, str | None]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = _run(Path(folder))
        for step in range(2):
            for number, (key, context, source) in enumerate(names):
                run.record_metric(key, number + step / 4, context, step, source)
        for moment in ("logged", "closed"):
            for number, name in enumerate(names):
                assert _values(run, metric_key(*name)) == [number, number + 0.25], moment
            run.close()
        document = json.loads((run.directory / "prov_run.json").read_bytes())
        kinds = [json.dumps(entity["prov:type"]) for entity in document["entity"].values()]
        assert sum('"provml:Metric"' in kind for kind in kinds) == len(names)
        assert not [path for path in run.layout.metrics.iterdir() if path.suffix != ".parquet"]


@pytest.mark.parametrize("closed", [False, True])
def test_steps_epochs_times_and_odd_numbers_come_back(closed: bool, tmp_path: Path) -> None:
    run = _run(tmp_path)
    for value, step, epoch in ((math.nan, None, None), (-math.inf, -5, 0), (5e-324, 2**63 - 1, 3)):
        run.record_metric("m", value, None, step, epoch=epoch, time=1_704_067_200_123_456_789)
    if closed:
        run.close()
    table = read_series(run.layout, MetricKey("m", None, None))
    assert table["step"].to_pylist() == [None, -5, 2**63 - 1]
    assert table["epoch"].to_pylist() == [None, 0, 3]
    first, *others = table["value"].to_pylist()
    assert math.isnan(first)
    assert others == [-math.inf, 5e-324]
    assert {str(time) for time in table["timestamp"].to_pylist()} == {
        "2024-01-01 00:00:00.123456+00:00"
    }
    assert table["rank"].to_pylist() == [0, 0, 0]


def test_a_metric_that_is_not_there_has_no_rows(tmp_path: Path) -> None:
    run = _run(tmp_path)
    run.record_metric("m", 1.0)
    assert _values(run, MetricKey("m", "Training", None)) == []
    run.close()
    assert _values(run, MetricKey("n", None, None)) == []
