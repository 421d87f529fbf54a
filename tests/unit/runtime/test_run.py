from __future__ import annotations

import gc
import math
import warnings
from contextlib import nullcontext
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.records import Note, Opened, Parameter, Status
from provml_lightning.errors import RecordError, RunClosedError, StorageError
from provml_lightning.runtime.run import Run
from provml_lightning.runtime.snapshot import compile_run
from provml_lightning.storage.contents import is_settled, read_contents
from provml_lightning.storage.layout import RunLayout
from provml_lightning.storage.recorder import Recorder
from provml_lightning.storage.series import read_series

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "run").mkdir()
    opened = Opened(time=1, experiment="e", run_id="0", uuid="u", user="me")
    return Run(RunLayout(tmp_path / "run"), opened, rank=0, waiting=100, strict=False)


def _values(run: Run, key: str = "m", context: str | None = None) -> list[float]:
    values: list[float] = read_series(run.layout, MetricKey(key, context, None))[
        "value"
    ].to_pylist()
    return values


def test_values_of_all_kinds_are_kept_as_numbers(run: Run) -> None:
    for value in (1.5, 2, True, Decimal("0.5"), np.float32(0.25), np.array([3]), math.inf):
        run.record_metric("m", value)
    assert _values(run) == [1.5, 2.0, 1.0, 0.5, 0.25, 3.0, math.inf]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"value": "1"}, "metric 'm': a str is not one number"),
        ({"value": [1, 2]}, "metric 'm': a list is not one number"),
        ({"step": 0.5}, "step 0.5 is not a whole number"),
        ({"step": 2**70}, "does not fit into 64 bits"),
        ({"epoch": -(2**70)}, "does not fit into 64 bits"),
        ({"time": 2**70}, "its time does not fit"),
        ({"time": "now"}, "its time does not fit"),
        ({"context": 3}, "context must be text, not int"),
        ({"source": ["a"]}, "source must be text, not list"),
        ({"key": b"m"}, "name must be text, not bytes"),
    ],
)
def test_what_cannot_be_recorded_is_refused_and_the_run_goes_on(
    arguments: dict[str, Any], message: str, run: Run
) -> None:
    run.record_metric("m", 1.0)
    with pytest.raises(RecordError, match=message):
        run.record_metric(**{"key": "m", "value": 2.0, **arguments})
    run.record_metric("m", 3.0)
    assert _values(run) == [1.0, 3.0]
    run.close()
    assert _values(run) == [1.0, 3.0]


class Mine(str, Enum):  # noqa: UP042  users write it so
    LOSS = "loss"


def test_spellings_of_one_name_are_one_metric_in_whatever_order_they_come(run: Run) -> None:
    run.record_metric(Mine.LOSS, 1.0, "TRAINING")
    run.record_metric("loss", 2.0, "Training")
    run.record_metric("loss", 3.0, Mine.LOSS)
    run.record_metric("loss", 4.0, "loss")
    assert _values(run, "loss", "Training") == [1.0, 2.0]
    assert _values(run, "loss", "loss") == [3.0, 4.0]


def test_a_closed_run_refuses_everything_but_a_look(run: Run) -> None:
    run.record_metric("m", 1.0)
    run.close()
    run.close()
    with pytest.raises(RunClosedError, match="use_run_id="):
        run.record_metric("m", 2.0)
    with pytest.raises(RunClosedError):
        run.record_metric("new", 2.0)
    with pytest.raises(RunClosedError):
        run.record(Parameter(time=1, key="p", value=1))
    run.snapshot()
    assert _values(run) == [1.0]
    assert is_settled(run.layout)


def test_an_interrupt_while_a_name_is_told_gives_its_number_to_no_other(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Recorder.append

    def interrupted(self: Recorder, record: Any) -> None:
        append(self, record)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Recorder, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run.record_metric("first", 1.0)
    run.record_metric("second", 2.0)
    run.record_metric("first", 1.0)
    run.close()
    assert _values(run, "first") == [1.0]
    assert _values(run, "second") == [2.0]


def test_a_snapshot_that_fails_leaves_the_run_as_it_was(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.record_metric("m", 1.0)

    def fail(*_: Any) -> None:
        raise OSError(28, "no room")

    with monkeypatch.context() as patched:
        patched.setattr("provml_lightning.runtime.snapshot.write_contents", fail)
        with pytest.raises(StorageError, match="make room and call 'prov4ml recover"):
            run.snapshot()
    run.record_metric("m", 2.0)
    run.close()
    assert _values(run) == [1.0, 2.0]


def test_compiling_again_changes_no_byte(run: Run) -> None:
    for number in range(3):
        run.record_metric("m", number, "Training", number, time=1_000_000_000_000_000_999 - number)
        run.record_metric("n", number, time=1_000_000_000_000_000_001 + number)
    run.close()
    document = run.directory / "prov_run.json"
    files = [document, *run.layout.metrics.iterdir(), run.layout.index]
    before = [path.read_bytes() for path in files]
    for _ in range(2):
        compile_run(run.layout, seal=True)
        assert [path.read_bytes() for path in files] == before


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("failing", [True, False])
def test_the_garbage_collector_waits_for_a_compile_and_is_left_as_it_was(
    run: Run, monkeypatch: pytest.MonkeyPatch, enabled: bool, failing: bool
) -> None:
    seen = []

    def write(*_: object) -> None:
        seen.append(gc.isenabled())
        if failing:
            raise OSError(28, "no room")

    monkeypatch.setattr("provml_lightning.runtime.snapshot.write_whole", write)
    if not enabled:
        gc.disable()
    try:
        with pytest.raises(StorageError) if failing else nullcontext():
            compile_run(run.layout, seal=False)
        assert (seen, gc.isenabled()) == ([False], enabled)
    finally:
        gc.enable()


def test_a_clock_that_was_set_back_disturbs_no_order(run: Run) -> None:
    for step, time in enumerate([5_000_000, 1_000_000, 3_000_000]):
        run.record_metric("m", step, None, step, time=time)
    run.record(Parameter(time=9, key="later", value=1))
    run.record(Parameter(time=2, key="earlier by a clock set back", value=1))
    run.close()
    contents = read_contents(run.layout)
    assert _values(run) == [0.0, 1.0, 2.0]
    (series,) = contents.series
    assert (series.first, series.last) == (0.0, 2.0)
    keys = [record.key for _, record in contents.records if isinstance(record, Parameter)]
    assert keys == ["later", "earlier by a clock set back"]


def test_a_fault_is_one_warning_and_a_note_though_it_ends_only_at_the_close(run: Run) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run._faults.report(OSError(28, "no room"))  # noqa: SLF001  as the recorder does
        run._faults.report(OSError(28, "no room"))  # noqa: SLF001
        run._faults.report(None)  # noqa: SLF001
    assert len(caught) == 1
    assert "no room" in str(caught[0].message)
    run.close()
    contents = read_contents(run.layout)
    (note,) = (record for _, record in contents.records if isinstance(record, Note))
    assert "no room" in note.message
    assert contents.status is Status.COMPLETED


def test_stray_temporary_files_are_not_taken_for_data(run: Run) -> None:
    run.record_metric("m", 1.0, "Training")
    run.snapshot()
    for folder in (run.layout.metrics, run.layout.journal, run.directory):
        for name in (".Training.parquet.99.tmp", ".sorted-x", ".run.json.99.tmp", "core.99"):
            (folder / name).write_bytes(b"torn")
    run.close()
    (series,) = read_contents(run.layout).series
    assert series.rows == 1
    assert is_settled(run.layout)
