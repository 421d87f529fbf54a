"""Many processes at once: each run has a folder of its own, each rank its own files."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.records import Status
from provml_lightning.domain.settings import RunSettings
from provml_lightning.runtime.opening import open_run
from provml_lightning.runtime.snapshot import compile_run
from provml_lightning.storage.contents import is_settled, read_contents
from provml_lightning.storage.layout import RunLayout
from provml_lightning.storage.series import read_series
from tests.integration.doomed import start

if TYPE_CHECKING:
    from pathlib import Path

PROCESSES = 100


def _open_together(project: Path, number: int) -> None:
    while not (project / "go").exists():
        time.sleep(0.001)
    run = open_run(RunSettings(experiment_name="swarm", provenance_save_dir=project))
    run.record_metric("number", float(number))


def test_a_hundred_processes_that_open_at_once_get_a_hundred_folders(tmp_path: Path) -> None:
    processes = [start(_open_together, tmp_path, number) for number in range(PROCESSES)]
    (tmp_path / "go").touch()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    folders = sorted(path for path in tmp_path.iterdir() if path.is_dir())
    assert {path.name for path in folders} == {f"swarm_{number}" for number in range(PROCESSES)}
    numbers = []
    for folder in folders:
        (series,) = read_contents(RunLayout(folder)).series
        assert series.rows == 1
        numbers.append(series.last)
    assert sorted(numbers) == [float(number) for number in range(PROCESSES)]


def _rank(project: Path, rank: int, rows: int) -> None:
    settings = RunSettings(
        experiment_name="ranks",
        provenance_save_dir=project,
        rank=rank,
        use_run_id=0,
        collect_all_processes=True,
    )
    run = open_run(settings)
    for step in range(rows):
        run.record_metric("loss", rank * 1000.0 + step, "Training", step)
        time.sleep(0.001 * rank)
    run.close()


def test_the_ranks_of_a_run_share_a_folder_and_lose_nothing(tmp_path: Path) -> None:
    processes = [start(_rank, tmp_path, rank, 200) for rank in range(4)]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    layout = RunLayout(tmp_path / "ranks_0")
    assert is_settled(layout)  # rank zero waited for the others, which were slower
    table = read_series(layout, MetricKey("loss", "Training", None))
    assert table["rank"].to_pylist() == [rank for rank in range(4) for _ in range(200)]
    assert table["value"].to_pylist() == [r * 1000.0 + s for r in range(4) for s in range(200)]
    assert not list(layout.journal.glob("*.points"))
    assert read_contents(layout).status is Status.COMPLETED


def _same_rank(project: Path, number: int) -> None:
    settings = RunSettings(experiment_name="same", provenance_save_dir=project, use_run_id=0)
    with open_run(settings) as run:
        for step in range(2000):
            run.record_metric("loss", number * 1e6 + step, None, step)
            if step % 500 == 0:
                run.snapshot()


def test_processes_that_continue_one_run_at_once_keep_all_their_values(tmp_path: Path) -> None:
    processes = [start(_same_rank, tmp_path, number) for number in range(4)]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    layout = RunLayout(tmp_path / "same_0")
    compile_run(layout, seal=True)
    values = read_series(layout, MetricKey("loss", None, None))["value"].to_pylist()
    assert sorted(values) == [number * 1e6 + step for number in range(4) for step in range(2000)]


def test_recovery_beside_a_run_that_lives_and_ends_takes_nothing_from_it(tmp_path: Path) -> None:
    for attempt in range(10):
        project = tmp_path / str(attempt)
        process = start(_same_rank, project, 1)
        layout = RunLayout(project / "same_0")
        while process.is_alive():
            if layout.is_run():
                compile_run(layout, seal=True)
        process.join()
        assert process.exitcode == 0
        values = read_series(layout, MetricKey("loss", None, None))["value"].to_pylist()
        assert values == [1e6 + step for step in range(2000)]


def test_readers_beside_a_run_that_logs_snapshots_and_closes_see_a_whole_beginning(
    tmp_path: Path,
) -> None:
    process = start(_same_rank, tmp_path, 2)
    layout = RunLayout(tmp_path / "same_0")
    seen = 0
    while process.is_alive():
        values = read_series(layout, MetricKey("loss", None, None))["value"].to_pylist()
        assert values == [2e6 + step for step in range(len(values))]
        assert len(values) >= seen
        seen = len(values)
        read_contents(layout)
    process.join()
    assert process.exitcode == 0


def test_two_runs_of_one_process_keep_apart(tmp_path: Path) -> None:
    settings = RunSettings(experiment_name="two", provenance_save_dir=tmp_path)
    runs = [open_run(settings), open_run(settings)]
    threads = [
        threading.Thread(target=_log_into, args=(run, number)) for number, run in enumerate(runs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, run in enumerate(runs):
        run.close()
        (series,) = read_contents(RunLayout(tmp_path / f"two_{number}")).series
        assert (series.rows, series.minimum, series.maximum) == (3000, number, number)


def _log_into(run: object, number: int) -> None:
    for step in range(3000):
        run.record_metric("loss", float(number), None, step)  # type: ignore[attr-defined]
