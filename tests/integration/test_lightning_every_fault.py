"""Each call of the operating system that recording makes fails once while a Trainer works."""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import pytest
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint

import prov4ml
from provml_lightning.errors import RecordDroppedWarning, StorageWarning
from tests.stories import versions
from tests.training import BATCHES, Digits, digits, trainer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists and is not empty"),
]

# What Python's files, folders and paths are made of (`open` is io.open), and pyarrow's own files.
CALLS = {
    "os": ("open", "write", "pwrite", "pread", "dup", "close", "fsync", "posix_fallocate", "mkdir",
           "unlink", "replace", "stat", "lstat", "scandir", "listdir"),
    "io": ("open",),
    "fcntl": ("flock",),
    "pyarrow.parquet.ParquetWriter": ("__init__", "write_table"),
    "pyarrow.parquet.ParquetFile": ("__init__", "read_row_group", "iter_batches"),
}  # fmt: skip
NAMES = [f"{module}.{name}" for module, names in CALLS.items() for name in names]
PHASES = ("fit", "validate", "test", "predict", "fit again", "save")
VERSIONS = 3
FIRST, EACH = 6, 5


class Disk:
    """Fails at some of our calls; they are counted in each phase, from the first batch on."""

    def __init__(self, fails: Callable[[str, str, int], bool] = lambda *_: False) -> None:
        self.fails = fails
        self.counts: Counter[tuple[str, str]] = Counter()
        self.phase: str | None = None

    def stand_in(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            phase = self.phase
            if phase is not None and _is_ours(sys._getframe(1)):  # noqa: SLF001
                self.counts[phase, name] += 1
                if self.fails(phase, name, self.counts[phase, name]):
                    if name == "os.close":
                        call(*args, **kwargs)  # as Linux does, which then says so
                    raise OSError(errno.EIO, "the disk is on fire")
            return call(*args, **kwargs)

        return called

    @contextmanager
    def stands_in(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for where, names in CALLS.items():
                owner = resolve_name(where)
                for name in names:
                    call = self.stand_in(f"{where}.{name}", getattr(owner, name))
                    patch.setattr(owner, name, call)
            yield


class FirstBatch(Callback):
    """From which on nothing of ours may stop anything."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk

    def on_train_batch_end(self, *_: Any) -> None:
        for thread in threading.enumerate():
            if thread.name == "provml-git":
                thread.join()  # the pipes of a process are no disk
        self.disk.phase = self.disk.phase or "fit"


def _is_ours(frame: FrameType | None) -> bool:
    """Tell whether a call comes from us, through Python's own library or pyarrow or not."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module.startswith("provml_lightning."):
            return True
        if module.partition(".")[0] not in {*sys.stdlib_module_names, "pyarrow"}:
            return False
        frame = frame.f_back
    return False


def live(folder: Path, disk: Disk, **options: Any) -> tuple[prov4ml.ProvMLLogger, list[str]]:
    """Do all that a Trainer can with a disk that may fail; return the logger and what it warned."""
    folder.mkdir()
    os.chdir(folder)
    torch.manual_seed(7)
    logger = prov4ml.ProvMLLogger(**options)
    keeper = ModelCheckpoint(monitor="val_loss", save_top_k=-1)
    teacher = trainer(
        logger, max_epochs=1, enable_checkpointing=True, callbacks=[FirstBatch(disk), keeper]
    )
    module = Digits()
    deeds = (
        lambda: teacher.fit(module, digits(), digits()),
        lambda: teacher.validate(module, digits(), verbose=False),
        lambda: teacher.test(module, digits(), ckpt_path="best", verbose=False),
        lambda: teacher.predict(module, digits()),
        lambda: teacher.fit(module, digits(), digits()),
        lambda: teacher.save_checkpoint(folder / "by_hand.ckpt"),
    )
    with disk.stands_in(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StorageWarning)
        warnings.simplefilter("always", RecordDroppedWarning)
        for phase, deed in zip(PHASES, deeds, strict=True):
            disk.phase = None if phase == "fit" else phase
            deed()
            teacher.fit_loop.max_epochs = 2
        disk.phase = None
    assert teacher.global_step == 2 * BATCHES
    prov4ml.end_run()
    return logger, [str(one.message) for one in caught]


def missing(logger: prov4ml.ProvMLLogger) -> list[str]:
    """Return what the record lacks once the disk is well again."""
    expected = {
        ("loss", "Training"): 2 * BATCHES,
        ("val_loss", "Validation"): 3,
        ("epoch_time", "Training"): 2,
        ("epoch_time", "Validation"): 3,
        ("epoch_time", "Testing"): 1,
        ("epoch_time", "Prediction"): 1,
    }
    listed = prov4ml.list_metrics(logger.log_dir)
    told = zip(listed["label"], listed["context"], listed["rows"], strict=True)
    counts = {(name, context): count for name, context, count in told}
    lacks = [
        name for (name, context), count in expected.items() if counts.get((name, context)) != count
    ]
    found = versions(logger)
    if len(found) != VERSIONS:
        lacks.append("checkpoints")
    if not all("provml:sha256" in one for one in found.values()):
        lacks.append("digest")
    if json.loads(Path(logger.log_dir, "run.json").read_text())["status"] != "completed":
        lacks.append("status")
    return lacks


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Counter[tuple[str, str]]:
    """Count the calls of a life in which nothing fails; each of them is made at least once."""
    disk, here = Disk(), Path.cwd()
    logger, warned = live(tmp_path_factory.mktemp("sound") / "run", disk)
    assert missing(logger) == warned == []
    assert {name for _, name in disk.counts} == set(NAMES)
    assert {phase for phase, _ in disk.counts} == set(PHASES)
    os.chdir(here)
    return disk.counts


def _some_of(count: int) -> list[int]:
    """Return the first calls of a kind, and of the many alike (a line for each setting) some."""
    return [number for number in range(1, count + 1) if number <= FIRST or number % EACH == 0]


@pytest.mark.parametrize("phase", PHASES)
def test_one_call_that_fails_stops_nothing_and_loses_nothing_in_silence(
    phase: str, calls: Counter[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        for number in _some_of(calls[phase, name]):
            which = (phase, name, number)
            disk = Disk(lambda *told, which=which: told == which)
            logger, warned = live(tmp_path / f"{name}.{number}", disk)
            assert not missing(logger) or warned, (which, missing(logger))


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("phase", PHASES)
def test_a_call_that_fails_for_long_stops_nothing_and_loses_nothing_in_silence(
    phase: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [*NAMES, ""]:
        disk = Disk(lambda when, what, _, name=name: when == phase and what.endswith(name))
        logger, warned = live(tmp_path / f"all {name}", disk, metrics_file_type=form)
        assert not missing(logger) or warned, (name, missing(logger))
