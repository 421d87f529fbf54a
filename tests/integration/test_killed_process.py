"""SIGKILL at any moment loses nothing that a call had returned from."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.records import Parameter, Status
from provml_lightning.runtime.snapshot import compile_run
from provml_lightning.storage.contents import is_settled, read_contents
from provml_lightning.storage.layout import RunLayout
from provml_lightning.storage.series import read_series
from tests.integration.doomed import (
    CONTEXTS,
    METRICS,
    PHASES,
    Acknowledged,
    live,
    live_step_by_step,
    start,
    value,
)

if TYPE_CHECKING:
    from pathlib import Path

# Each phase is met at this many moments, spread over about as long as it lasts [s].
MOMENTS = 9
LENGTHS = {
    "opening": 0.08,
    "logging": 0.15,
    "snapshot": 0.25,
    "between": 0.1,
    "pause": 0.3,
    "closing": 0.3,
    "closed": 0.05,
}


@pytest.mark.parametrize("phase", LENGTHS)
def test_what_was_acknowledged_outlives_a_kill_at_a_random_moment(
    phase: str, tmp_path: Path
) -> None:
    for moment in range(MOMENTS):
        folder = tmp_path / str(moment)
        folder.mkdir()
        told = Acknowledged(folder / "told")
        process = start(live, folder / "prov", folder / "told")
        _await(told, phase)
        time.sleep(random.uniform(0, LENGTHS[phase]))  # noqa: S311  no secret
        process.kill()
        process.join()
        _check(folder / "prov", told)


@pytest.mark.parametrize("remainder", range(4))
def test_a_kill_between_any_two_file_operations_loses_nothing(
    remainder: int, tmp_path: Path
) -> None:
    exit_code, operation = -9, 4 + remainder
    while exit_code != 0:
        folder = tmp_path / str(operation)
        folder.mkdir()
        told = Acknowledged(folder / "told")
        process = start(live_step_by_step, folder / "prov", folder / "told", operation)
        process.join()
        exit_code = process.exitcode
        assert exit_code in (0, -9)
        _check(folder / "prov", told)
        operation += 4
    assert told.phase == PHASES.index("closed")
    assert operation > 60


def _await(told: Acknowledged, phase: str) -> None:
    deadline = time.monotonic() + 30
    while told.phase < PHASES.index(phase):
        assert time.monotonic() < deadline
        time.sleep(0.001)


def _check(project: Path, told: Acknowledged) -> None:
    """Compare everything that can be read with what had been acknowledged."""
    folders = list(project.iterdir()) if project.exists() else []
    if not folders or not RunLayout(folders[0]).is_run():
        assert told.phase <= PHASES.index("opening")
        return
    layout = RunLayout(folders[0])
    before = sorted(layout.directory.rglob("*"))
    counts = _values_in_contents(layout, told)
    assert sorted(layout.directory.rglob("*")) == before  # a reader writes nothing

    document = layout.directory / compile_run(layout, seal=True).document
    assert _values_in_contents(layout, told) == counts
    assert sum(_rows(layout).values()) == sum(counts)
    assert not list(layout.journal.glob("*.points"))
    assert is_settled(layout)
    first = document.read_bytes()
    compile_run(layout, seal=True)
    assert document.read_bytes() == first


def _values_in_contents(layout: RunLayout, told: Acknowledged) -> list[int]:
    contents = read_contents(layout)
    parameters = [record for _, record in contents.records if isinstance(record, Parameter)]
    assert [fact.value for fact in parameters] == list(range(len(parameters)))
    assert told.facts <= len(parameters) <= told.facts + 1

    rows = {series.name: series.rows for series in contents.series}
    counts = []
    for metric, acknowledged in enumerate(told.values):
        name = MetricKey(METRICS[metric], CONTEXTS[metric], None)
        table = read_series(layout, name)
        found = table.num_rows
        assert acknowledged <= found <= acknowledged + 1
        assert rows.pop(name, 0) == found
        assert table["value"].to_pylist() == [value(metric, step) for step in range(found)]
        assert table["step"].to_pylist() == list(range(found))
        counts.append(found)
    assert not rows
    closed = told.phase == PHASES.index("closed")
    assert contents.status in (
        (Status.COMPLETED,) if closed else (Status.COMPLETED, Status.INCOMPLETE)
    )
    return counts


def _rows(layout: RunLayout) -> dict[str, int]:
    """Return the rows of the metrics files, as any other program reads them."""
    return {path.name: pq.read_table(path).num_rows for path in layout.metrics.glob("*.parquet")}
