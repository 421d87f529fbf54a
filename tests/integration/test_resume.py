"""A run that ended, or was killed, goes on in a new segment; what it had stays as it was."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.records import Parameter, Status
from provml_lightning.domain.settings import MetricsType, RunSettings
from provml_lightning.runtime.opening import open_run
from provml_lightning.runtime.snapshot import compile_run
from provml_lightning.storage.contents import read_contents
from provml_lightning.storage.index import read_index
from provml_lightning.storage.series import read_series
from tests.integration.doomed import start

if TYPE_CHECKING:
    from pathlib import Path

    from provml_lightning.runtime.run import Run


def _open(project: Path, **settings: Any) -> Run:
    known = {"experiment_name": "again", "provenance_save_dir": project, "use_run_id": 0}
    return open_run(RunSettings(**known | settings))  # type: ignore[arg-type,return-value]


def _log(run: Run, first: int, last: int) -> None:
    for step in range(first, last):
        run.record_metric("loss", step + 0.5, "Training", step)


def _losses(run: Run) -> list[float]:
    table = read_series(run.layout, MetricKey("loss", "Training", None))
    values: list[float] = table["value"].to_pylist()
    return values


def _log_and_wait_to_be_killed(project: Path) -> None:
    import os
    import signal

    run = _open(project)
    _log(run, 300, 600)
    run.record(Parameter(time=2, key="told before the kill", value=1))
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_closed_and_a_killed_run_go_on_with_all_their_values(tmp_path: Path) -> None:
    first = _open(tmp_path)
    _log(first, 0, 300)
    first.close()
    process = start(_log_and_wait_to_be_killed, tmp_path)
    process.join()
    assert process.exitcode == -9
    third = _open(tmp_path)
    assert third.opened.uuid == first.opened.uuid
    _log(third, 600, 900)
    third.close()
    assert _losses(third) == [step + 0.5 for step in range(900)]
    contents = read_contents(third.layout)
    assert [writer.segment for writer in contents.writers] == [1, 2, 3]
    assert [r.key for _, r in contents.records if isinstance(r, Parameter)] == [
        "told before the kill"
    ]
    assert contents.status is Status.COMPLETED
    index = read_index(third.layout.index)
    assert index is not None
    assert index.sealed == ["rank-00000", "rank-00000.2", "rank-00000.3"]


def test_a_segment_of_another_machine_keeps_its_log_and_holds_nobody_up(tmp_path: Path) -> None:
    first = _open(tmp_path)
    _log(first, 0, 10)
    journal = first.layout.journal_file("rank-00000")
    place = first._recorder.writer.place  # noqa: SLF001  as if another boot had written it
    copy = tmp_path / "elsewhere"
    shutil.copytree(first.directory, copy)
    first.close()
    shutil.rmtree(first.directory)
    copy.rename(first.directory)
    journal.write_bytes(journal.read_bytes().replace(place.encode(), b"another boot/1"))
    second = _open(tmp_path)
    _log(second, 10, 20)
    second.close()
    assert _losses(second) == [step + 0.5 for step in range(20)]
    # Whether that process lives cannot be told from here, so its log stays.
    assert [path.name for path in second.layout.journal.glob("*.points")] == ["rank-00000.points"]
    compile_run(second.layout, seal=True)
    assert _losses(second) == [step + 0.5 for step in range(20)]


def test_the_form_of_the_metrics_files_stays_that_of_the_first_segment(tmp_path: Path) -> None:
    first = _open(tmp_path)
    _log(first, 0, 10)
    first.close()
    second = _open(tmp_path, metrics_file_type=MetricsType.CSV)
    _log(second, 10, 20)
    second.close()
    assert [path.name for path in second.layout.metrics.iterdir()] == ["Training.parquet"]
    assert _losses(second) == [step + 0.5 for step in range(20)]


def test_a_run_whose_journal_folder_was_thrown_away_keeps_what_comes_and_what_was(
    tmp_path: Path,
) -> None:
    first = _open(tmp_path)
    _log(first, 0, 10)
    first.close()
    shutil.rmtree(first.layout.journal)
    second = _open(tmp_path)
    _log(second, 10, 20)
    second.close()
    assert _losses(second) == [step + 0.5 for step in range(20)]


def test_values_in_the_metrics_file_outlive_the_loss_of_a_log(tmp_path: Path) -> None:
    first = _open(tmp_path)
    _log(first, 0, 10)
    first.snapshot()
    first.layout.points_file("rank-00000").unlink()
    compile_run(first.layout, seal=False)
    assert _losses(first) == [step + 0.5 for step in range(10)]
    first.close()
    assert _losses(first) == [step + 0.5 for step in range(10)]


def test_logging_after_the_end_of_a_part_goes_on_as_if_nothing_had_ended(tmp_path: Path) -> None:
    run = _open(tmp_path)
    for part in range(4):
        _log(run, part * 700, (part + 1) * 700)
        run.snapshot(Status.COMPLETED)
        assert read_contents(run.layout).status is Status.COMPLETED
        assert _losses(run) == [step + 0.5 for step in range((part + 1) * 700)]
    run.record_metric("test", 1.0, "Testing")
    assert read_contents(run.layout).status is Status.RUNNING
    run.close()
    assert _losses(run) == [step + 0.5 for step in range(2800)]
    assert read_contents(run.layout).status is Status.COMPLETED
