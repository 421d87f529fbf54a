"""Where files cannot be mapped, a kill costs at most a second or ``save_after_n_logs`` values."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.settings import RunSettings
from provml_lightning.errors import RunClosedError
from provml_lightning.runtime.opening import open_run
from provml_lightning.runtime.snapshot import compile_run
from provml_lightning.storage.layout import RunLayout
from provml_lightning.storage.series import read_series
from tests.integration.doomed import Acknowledged, start

if TYPE_CHECKING:
    from pathlib import Path

    from provml_lightning.runtime.run import Run


def _refuse(*_: Any) -> None:
    """Refuse as a file system does that cannot reserve."""
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


def _open(project: Path, waiting: int = 100) -> Run:
    settings = RunSettings(
        experiment_name="odd", provenance_save_dir=project, save_after_n_logs=waiting
    )
    return open_run(settings)  # type: ignore[return-value]


def _values(run: Run | RunLayout, key: str = "loss") -> list[float]:
    layout = run if isinstance(run, RunLayout) else run.layout
    values: list[float] = read_series(layout, MetricKey(key, None, None))["value"].to_pylist()
    return values


@pytest.fixture
def _unmapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "posix_fallocate", _refuse)


def _live(project: Path, told_path: Path, waiting: int, pause: float) -> None:
    os.posix_fallocate = _refuse
    told = Acknowledged(told_path)
    run = _open(project, waiting)
    told.enter("logging")
    step = 0
    while True:
        run.record_metric("loss", float(step), None, step)
        step += 1
        told[2] = step
        time.sleep(pause)


@pytest.mark.parametrize("delay", [0.05, 0.2, 0.4, 0.7, 1.1])
def test_a_kill_costs_less_than_one_buffer(delay: float, tmp_path: Path) -> None:
    told = Acknowledged(tmp_path / "told")
    process = start(_live, tmp_path / "prov", tmp_path / "told", 100, 0.0)
    while told[2] == 0:
        time.sleep(0.001)
    time.sleep(delay)
    process.kill()
    process.join()
    layout = RunLayout(tmp_path / "prov" / "odd_0")
    kept = _values(layout)
    assert kept == [float(step) for step in range(len(kept))]
    assert told[2] - 100 <= len(kept) <= told[2] + 1
    compile_run(layout, seal=True)
    assert _values(layout) == kept


def test_a_kill_costs_little_more_than_a_second_of_slow_logging(tmp_path: Path) -> None:
    told = Acknowledged(tmp_path / "told")
    process = start(_live, tmp_path / "prov", tmp_path / "told", 1_000_000, 0.05)
    while told[2] == 0:
        time.sleep(0.001)
    time.sleep(3.2)
    before = told[2]
    time.sleep(1.5)  # a second, and a busy machine's delay
    process.kill()
    process.join()
    kept = _values(RunLayout(tmp_path / "prov" / "odd_0"))
    assert len(kept) >= before
    assert kept == [float(step) for step in range(len(kept))]


@pytest.mark.usefixtures("_unmapped")
@pytest.mark.parametrize("waiting", [1, 7, 100, 5000])
def test_nothing_is_lost_whatever_the_size_of_the_buffer(waiting: int, tmp_path: Path) -> None:
    run = _open(tmp_path, waiting)
    for step in range(3000):
        run.record_metric("loss", float(step), None, step)
        if step == 1500:
            run.snapshot()
            assert _values(run) == [float(each) for each in range(1501)]
    run.close()
    assert _values(run) == [float(step) for step in range(3000)]


@pytest.mark.usefixtures("_unmapped")
def test_threads_that_log_into_buffers_until_the_close_are_kept_or_told(tmp_path: Path) -> None:
    run = _open(tmp_path, 10)
    kept = [0] * 6

    def work(number: int) -> None:
        with contextlib.suppress(RunClosedError):
            while True:
                run.record_metric(f"{number}", float(kept[number]))
                kept[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(kept))]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    run.close()
    for thread in threads:
        thread.join()
    for number, count in enumerate(kept):
        assert _values(run, f"{number}") == [float(step) for step in range(count)]
