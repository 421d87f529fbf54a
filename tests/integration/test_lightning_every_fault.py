"""Each call of the operating system that recording makes fails once while a Trainer works."""

from __future__ import annotations

import errno
import json
import os
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint

import prov4ml
from provml_lightning.errors import RecordDroppedWarning, StorageWarning
from tests.stories import relations, versions
from tests.training import BATCHES, Digits, digits, trainer

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

pytestmark = pytest.mark.timeout(300)

# What Python's files, folders and paths are made of; `open` is io.open.
CALLS = {
    "os": ("open", "write", "fsync", "ftruncate", "posix_fallocate", "pread", "mkdir", "unlink",
           "replace", "stat", "scandir", "listdir"),
    "io": ("open",),
    "fcntl": ("flock",),
}  # fmt: skip
EPOCHS = 2


class Disk(Callback):
    """Fails at some of our calls between the first batch of a training and its end."""

    def __init__(self, fails: Callable[[str, int], bool]) -> None:
        self.fails = fails
        self.counts: Counter[str] = Counter()
        self.is_counting = False

    def stand_in(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            if self.is_counting and _is_ours(sys._getframe(1)):  # noqa: SLF001
                self.counts[name] += 1
                if self.fails(name, self.counts[name]):
                    raise OSError(errno.EIO, "the disk is on fire")
            return call(*args, **kwargs)

        return called

    def on_train_batch_end(self, *_: Any) -> None:
        self.is_counting = True


def _is_ours(frame: FrameType | None) -> bool:
    """Tell whether a call comes from us, through Python's own library or not."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module.startswith("provml_lightning."):
            return True
        if module.partition(".")[0] not in sys.stdlib_module_names:
            return False
        frame = frame.f_back
    return False


def train(folder: Path, disk: Disk) -> tuple[prov4ml.ProvMLLogger, list[str]]:
    """Train with a disk that may fail; return the logger and what it warned of."""
    folder.mkdir()
    os.chdir(folder)
    torch.manual_seed(7)
    logger = prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint(monitor="val_loss", save_top_k=1)
    teacher = trainer(
        logger, max_epochs=EPOCHS, enable_checkpointing=True, callbacks=[disk, keeper]
    )
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StorageWarning)
        warnings.simplefilter("always", RecordDroppedWarning)
        for module, names in CALLS.items():
            for name in names:
                call = getattr(sys.modules[module], name)
                patch.setattr(f"{module}.{name}", disk.stand_in(f"{module}.{name}", call))
        teacher.fit(Digits(), digits(), digits())
    disk.is_counting = False
    assert teacher.state.finished
    assert teacher.global_step == EPOCHS * BATCHES
    prov4ml.end_run()
    return logger, [str(one.message) for one in caught]


def missing(logger: prov4ml.ProvMLLogger) -> list[str]:
    """Return what the record of a training lacks once the disk is well again."""
    expected = {
        ("loss", "Training"): EPOCHS * BATCHES,
        ("val_loss", "Validation"): EPOCHS,
        ("epoch_time", "Training"): EPOCHS,
        ("epoch_time", "Validation"): EPOCHS,
    }
    listed = prov4ml.list_metrics(logger.log_dir)
    told = zip(listed["label"], listed["context"], listed["rows"], strict=True)
    counts = {(name, context): count for name, context, count in told}
    lacks = [
        name for (name, context), count in expected.items() if counts.get((name, context)) != count
    ]
    found = versions(logger)
    gone = [entity for (entity,) in relations(logger, "wasInvalidatedBy", "entity")]
    if len(found) != EPOCHS or gone != [next(iter(found), "")]:  # the second was better
        lacks.append("checkpoints")
    if not all("provml:sha256" in found[key] for key in found.keys() - set(gone)):
        lacks.append("digest")
    if json.loads(Path(logger.log_dir, "run.json").read_text())["status"] != "completed":
        lacks.append("status")
    return lacks


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    """Count the calls of a training in which nothing fails."""
    disk = Disk(lambda *_: False)
    logger, warned = train(tmp_path_factory.mktemp("sound") / "run", disk)
    assert missing(logger) == warned == []
    return disk.counts


NAMES = [f"{module}.{name}" for module, names in CALLS.items() for name in names]


@pytest.mark.parametrize("name", NAMES)
def test_one_call_that_fails_stops_no_training_and_loses_nothing_in_silence(
    name: str, calls: Counter[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(1, calls[name] + 1):
        disk = Disk(lambda kind, count, number=number: (kind, count) == (name, number))
        logger, warned = train(tmp_path / str(number), disk)
        assert not missing(logger) or warned, (name, number, missing(logger))


@pytest.mark.parametrize("name", [*NAMES, ""])
def test_a_call_that_fails_until_the_training_ends_stops_it_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    disk = Disk(lambda kind, _: kind.endswith(name))
    logger, warned = train(tmp_path / "run", disk)
    assert not missing(logger) or warned, (name, missing(logger))
