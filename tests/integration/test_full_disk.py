"""A full disk never raises into the training; what was logged waits and is written."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import resource
import shutil
import subprocess
import time
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.records import Note, Parameter, Status
from provml_lightning.domain.settings import RunSettings
from provml_lightning.errors import StorageError, StorageWarning
from provml_lightning.runtime.opening import open_run
from provml_lightning.runtime.snapshot import compile_run
from provml_lightning.storage.contents import read_contents
from provml_lightning.storage.layout import RunLayout
from provml_lightning.storage.series import read_series
from tests.integration.doomed import Acknowledged, start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provml_lightning.runtime.run import Run

_SIZE = 4 * 2**20


class SmallDisk:
    """A real file system of 4 MiB."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Leave not one byte."""
        with self._filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            for size in (2**16, 2**12, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))

    def free(self) -> None:
        """Have room again."""
        self._filler.unlink()


class FileSizeLimit:
    """No file of this process may grow: the kernel refuses with EFBIG."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        """Let no file have more bytes than the smallest journal has."""
        smallest = min(path.stat().st_size for path in self.folder.rglob("*.jsonl"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (smallest, self._before[1]))

    def free(self) -> None:
        """Let files grow again."""
        resource.setrlimit(resource.RLIMIT_FSIZE, self._before)


Disk = SmallDisk | FileSizeLimit


def _mount(folder: Path) -> bool:
    options = ["-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(folder)]
    with contextlib.suppress(OSError):
        mounted = subprocess.run([_found("mount"), *options], check=False, capture_output=True)
        return mounted.returncode == 0
    return False


def _found(program: str) -> str:
    return shutil.which(program) or program


@pytest.fixture(params=["a small file system", "a limit on the size of files"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    """Where mounting is not permitted, both are the limit."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if request.param == "a small file system" and _mount(folder):
        yield SmallDisk(folder)
        subprocess.run([_found("umount"), "--lazy", str(folder)], check=True)
    else:
        limit = FileSizeLimit(folder)
        _lift_after(request, limit)
        yield limit
        limit.free()


def _lift_after(request: pytest.FixtureRequest, limit: FileSizeLimit) -> None:
    """Lift the limit with the test's last line: pytest then reports, perhaps into a long file."""
    body = request.node.obj

    @functools.wraps(body)
    def lifted(**arguments: Any) -> None:
        try:
            body(**arguments)
        finally:
            limit.free()

    request.node.obj = lifted


def _open(disk: Disk, *, strict: bool = False) -> Run:
    settings = RunSettings(experiment_name="full", provenance_save_dir=disk.folder, strict=strict)
    return open_run(settings)  # type: ignore[return-value]


def _log(run: Run, steps: range) -> None:
    for step in steps:
        run.record_metric("old", step + 0.5, "Training", step)
        run.record_metric(f"new {steps.start}", step + 0.5, None, step)
        if step % 100 == 0:
            run.record(Parameter(time=time.time_ns(), key=f"p{step}", value=step))


def _values(run: Run, key: str, context: str | None = None) -> list[float]:
    values: list[float] = read_series(run.layout, MetricKey(key, context, None))[
        "value"
    ].to_pylist()
    return values


def test_training_goes_on_and_all_is_written_when_there_is_room(disk: Disk) -> None:
    run = _open(disk)
    _log(run, range(1000))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        disk.fill()
        _log(run, range(1000, 9000))
        with pytest.raises(StorageError, match="make room"):
            run.snapshot()
        _log(run, range(9000, 10_000))
        disk.free()
        _log(run, range(10_000, 11_000))
        run.close()
    assert [warning.category for warning in caught] == [StorageWarning]

    contents = read_contents(run.layout)
    assert _values(run, "old", "Training") == [step + 0.5 for step in range(11_000)]
    assert _values(run, "new 1000") == [step + 0.5 for step in range(1000, 9000)]
    facts = [record for _, record in contents.records if isinstance(record, Parameter)]
    assert [fact.value for fact in facts] == list(range(0, 11_000, 100))
    notes = [record for _, record in contents.records if isinstance(record, Note)]
    assert notes
    assert {note.topic for note in notes} == {"storage"}
    assert len(notes) < 5
    assert contents.status is Status.COMPLETED
    assert not list(run.layout.journal.glob("*.points"))


def test_values_keep_their_order_when_blocks_are_mapped_again(disk: Disk) -> None:
    run = _open(disk)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        disk.fill()
        steps = itertools.count()
        for step in itertools.islice(steps, 5000):
            run.record_metric("loss", float(step), None, step)
        disk.free()
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:  # the thread that goes back comes once a second
            run.record_metric("loss", float(step := next(steps)), None, step)
            time.sleep(0.001)
        run.snapshot()
    assert _values(run, "loss") == [float(each) for each in range(step + 1)]
    run.close()
    assert _values(run, "loss") == [float(each) for each in range(step + 1)]


def test_a_disk_that_stays_full_is_told_once_at_the_end(disk: Disk) -> None:
    run = _open(disk)
    _log(run, range(1000))
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        disk.fill()
        _log(run, range(1000, 9000))
        with pytest.raises(StorageError, match=r"\d+ values and facts were lost"):
            run.close()
    disk.free()
    compile_run(run.layout, seal=True)
    values = _values(run, "old", "Training")
    assert 1000 <= len(values) < 9000
    assert values == [step + 0.5 for step in range(len(values))]


def test_a_strict_run_raises_and_says_so(disk: Disk) -> None:
    run = _open(disk, strict=True)
    run.record_metric("loss", 0.5)
    disk.fill()

    def log_many() -> None:
        for step in range(10_000):
            run.record_metric("loss", 0.5, None, step)

    def tell_many() -> None:  # the last page of the journal may have room
        for number in range(1000):
            run.record(Parameter(time=0, key="p", value=number))

    for call in (log_many, tell_many):
        with pytest.raises(StorageError, match="the disk takes nothing more"):
            call()
    disk.free()
    run.close()
    assert set(_values(run, "loss")) == {0.5}


def test_a_full_disk_is_an_error_where_a_run_opens(disk: Disk) -> None:
    _open(disk).close()
    disk.fill()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(StorageError, match=r"cannot be (made|written)|no run can be made"):
            _open(disk)


def _write_and_wait(disk: Disk, told_path: Path) -> None:
    told = Acknowledged(told_path)
    run = _open(disk)
    warnings.simplefilter("ignore")
    disk.fill()
    run.record_metric("first told while full", 1.5)
    run.record(Parameter(time=time.time_ns(), key="told while full", value=1))
    disk.free()
    time.sleep(2.5)
    told.enter("closed")
    time.sleep(60)


def test_what_a_full_disk_refused_is_tried_again_though_nobody_logs(
    disk: Disk, tmp_path: Path
) -> None:
    told = Acknowledged(tmp_path / "told")
    process = start(_write_and_wait, disk, tmp_path / "told")
    while told.phase == 0:
        assert process.is_alive()
        time.sleep(0.05)
    process.kill()
    process.join()
    (folder,) = (path for path in disk.folder.iterdir() if path.is_dir())
    contents = read_contents(RunLayout(folder))
    assert [(series.name.key, series.last) for series in contents.series] == [
        ("first told while full", 1.5)
    ]
    assert [r.key for _, r in contents.records if isinstance(r, Parameter)] == ["told while full"]


def test_a_run_whose_folder_vanished_goes_on_and_fails_at_its_end(tmp_path: Path) -> None:
    run: Run = open_run(RunSettings(experiment_name="gone", provenance_save_dir=tmp_path))  # type: ignore[assignment]
    shutil.rmtree(run.directory)
    for step in range(5000):
        run.record_metric("loss", 0.5, None, step)
    run.record(Parameter(time=time.time_ns(), key="p", value=1))
    with pytest.raises(StorageError, match="could not be written"):
        run.close()
    assert not run.is_open


def test_a_run_is_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    run: Run = open_run(RunSettings(experiment_name="read", provenance_save_dir=tmp_path))  # type: ignore[assignment]
    run.record_metric("loss", 0.5)
    run.layout.journal.chmod(0o500)
    before = sorted(path.name for path in run.layout.journal.iterdir())
    modified = run.layout.journal.stat().st_mtime_ns
    contents = read_contents(run.layout)
    assert [series.rows for series in contents.series] == [1]
    assert sorted(path.name for path in run.layout.journal.iterdir()) == before
    assert run.layout.journal.stat().st_mtime_ns == modified
    os.chmod(run.layout.journal, 0o700)  # noqa: PTH101
    run.close()
