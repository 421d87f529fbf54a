"""Calls from many threads, and from children born by fork as a DataLoader's workers are."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.records import Parameter, Status
from provml_lightning.domain.settings import RunSettings
from provml_lightning.errors import RunClosedError
from provml_lightning.runtime.active import current, deliver, enter
from provml_lightning.runtime.opening import open_run
from provml_lightning.storage.contents import read_contents
from provml_lightning.storage.layout import RunLayout
from provml_lightning.storage.series import read_series
from tests.integration.doomed import start

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from provml_lightning.runtime.run import Run

THREADS = 8


def _open(project: Path, name: str = "threads") -> Run:
    return open_run(RunSettings(experiment_name=name, provenance_save_dir=project))  # type: ignore[return-value]


def _together(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.fixture
def _eager_switches() -> object:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_eager_switches")
def test_threads_lose_no_value_and_no_name_to_each_other(tmp_path: Path) -> None:
    run = _open(tmp_path)

    def work(number: int) -> None:
        for step in range(3000):
            run.record_metric("shared", number * 1e6 + step, "Training", step)
            run.record_metric(f"own {number} {step % 50}", float(step), None, step)

    _together(work)
    run.close()
    shared = read_series(run.layout, MetricKey("shared", "Training", None))["value"].to_pylist()
    for number in range(THREADS):
        mine = [value - number * 1e6 for value in shared if value // 1e6 == number]
        assert mine == list(range(3000))  # each thread's own order stands
    for number in range(THREADS):
        for name in range(50):
            key = MetricKey(f"own {number} {name}", None, None)
            values = read_series(run.layout, key)["value"].to_pylist()
            assert values == list(range(name, 3000, 50))


def _check_snapshot(run: Run, counts: list[int]) -> None:
    """Take a snapshot, and find in it at least what had been logged before."""
    run.snapshot()
    found = {series.name.key: series for series in read_contents(run.layout).series}
    for number, count in enumerate(counts):
        if count:
            series = found[f"{number}"]
            assert series.rows >= count
            assert (series.first, series.last) == (0.0, series.rows - 1.0)


def test_snapshots_beside_threads_that_log_new_and_old_names_are_whole(tmp_path: Path) -> None:
    run = _open(tmp_path)
    stop = threading.Event()
    counts = [0] * THREADS

    def work(number: int) -> None:
        while not stop.is_set():
            step = counts[number]
            run.record_metric(f"{number}", float(step), None, step)
            run.record_metric(f"{number} new {step % 60}", float(step), "Training", step)
            counts[number] += 1
            if step % 5 == 0:
                time.sleep(0.001)

    def look(_: int) -> None:
        try:
            for _ in range(10):
                _check_snapshot(run, list(counts))
        finally:
            stop.set()

    with ThreadPoolExecutor(THREADS + 1) as pool:
        futures = [pool.submit(work, number) for number in range(THREADS)]
        futures.append(pool.submit(look, 0))
    for future in futures:
        future.result()
    run.close()
    for number, count in enumerate(counts):
        values = read_series(run.layout, MetricKey(f"{number}", None, None))["value"].to_pylist()
        assert values == list(range(count))


@pytest.mark.usefixtures("_eager_switches")
def test_threads_that_log_while_a_part_of_the_run_ends_lose_nothing(tmp_path: Path) -> None:
    run = _open(tmp_path)
    stop = threading.Event()
    counts = [0] * THREADS

    def work(number: int) -> None:
        while not stop.is_set():
            run.record_metric(f"{number}", float(counts[number]), None, counts[number])
            counts[number] += 1
            if counts[number] % 50 == 0:
                time.sleep(0.001)

    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(work, number) for number in range(THREADS)]
        try:
            for _ in range(6):
                run.snapshot(Status.COMPLETED)
        finally:
            stop.set()
    for future in futures:
        future.result()
    run.close()
    for number, count in enumerate(counts):
        values = read_series(run.layout, MetricKey(f"{number}", None, None))["value"].to_pylist()
        assert values == list(range(count))
    assert not list(run.layout.journal.glob("*.points"))


@pytest.mark.usefixtures("_eager_switches")
def test_a_call_beside_the_close_is_kept_or_refused_never_ignored(tmp_path: Path) -> None:
    for attempt in range(5):
        run = _open(tmp_path, f"close {attempt}")
        kept = [0] * THREADS

        def work(number: int, run: Run = run, kept: list[int] = kept) -> None:
            with contextlib.suppress(RunClosedError):
                while True:
                    run.record_metric(f"{number}", float(kept[number]))
                    kept[number] += 1

        closer = threading.Timer(0.1, run.close)
        closer.start()
        _together(work)
        closer.join()
        for number, count in enumerate(kept):
            values = read_series(run.layout, MetricKey(f"{number}", None, None))["value"]
            assert values.to_pylist() == list(range(count))


def test_snapshots_from_many_threads_do_not_hurt_each_other(tmp_path: Path) -> None:
    run = _open(tmp_path)

    def work(number: int) -> None:
        for step in range(3):
            run.record_metric("loss", float(number), None, step)
            run.snapshot()

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(work, range(THREADS))) == [None] * THREADS
    run.close()
    assert read_contents(run.layout).series[0].rows == THREADS * 3


def _train_with_workers(project: Path) -> None:
    """Fork as a DataLoader does, each epoch anew, while the parent goes on."""
    warnings.simplefilter("ignore", DeprecationWarning)
    run = _open(project, "forks")
    enter(run)
    run.record_metric("loss", -1.0, "Training")
    for epoch in range(3):
        children = []
        for worker in range(2):
            child = os.fork()
            if child == 0:
                for step in range(700):
                    run.record_metric("loss", epoch * 100.0 + worker, "Training", step)
                    run.record_metric("worker's", float(worker), None, step)
                run.record(Parameter(time=time.time_ns(), key=f"{epoch} {worker}", value=1))
                os._exit(0)
            children.append(child)
        for step in range(700):
            run.record_metric("loss", 7000.0 + epoch, "Training", step)
        for child in children:
            assert os.waitpid(child, 0)[1] == 0
        run.snapshot()
    run.close()
    os._exit(0)


def test_children_born_by_fork_write_their_own_files(tmp_path: Path) -> None:
    process = start(_train_with_workers, tmp_path)
    process.join()
    assert process.exitcode == 0
    layout = RunLayout(tmp_path / "forks_0")
    values = read_series(layout, MetricKey("loss", "Training", None))["value"].to_pylist()
    expected = {epoch * 100.0 + worker: 700 for epoch in range(3) for worker in range(2)}
    expected |= {7000.0 + epoch: 700 for epoch in range(3)} | {-1.0: 1}
    assert {value: values.count(value) for value in set(values)} == expected
    contents = read_contents(layout)
    facts = {record.key for _, record in contents.records if isinstance(record, Parameter)}
    assert facts == {f"{epoch} {worker}" for epoch in range(3) for worker in range(2)}
    assert contents.status is Status.COMPLETED
    assert not list(layout.journal.glob("*.points"))


def _wait_then_open(project: Path) -> None:
    for step in range(10):
        deliver(lambda run, step=step: run.record_metric("early", float(step), None, step))
    assert current() is None
    run = _open(project, "early")
    enter(run)
    deliver(lambda run: run.record_metric("early", 10.0, None, 10))
    os._exit(0)


def test_calls_before_any_run_go_to_the_first_that_opens_in_order(tmp_path: Path) -> None:
    process = start(_wait_then_open, tmp_path)
    process.join()
    assert process.exitcode == 0
    values = read_series(RunLayout(tmp_path / "early_0"), MetricKey("early", None, None))["value"]
    assert values.to_pylist() == list(range(11))


FORKED_MEANWHILE = """
import gc, os, sys
from pathlib import Path
from provml_lightning.runtime import snapshot
from provml_lightning.storage.layout import RunLayout

def fork(layout, *, seal):
    assert not gc.isenabled()
    child = os.fork()
    if child == 0:
        os._exit(0 if gc.isenabled() else 1)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

snapshot._compile = fork
(layout := RunLayout(Path(sys.argv[1]))).journal.mkdir()
snapshot.compile_run(layout, seal=False)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_born_while_documents_are_written_collects_its_garbage(tmp_path: Path) -> None:
    program = [sys.executable, "-c", FORKED_MEANWHILE, str(tmp_path)]
    assert subprocess.run(program, check=False, timeout=100).returncode == 0
