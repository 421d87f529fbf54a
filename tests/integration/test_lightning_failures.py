"""A training that fails, is interrupted, or whose disk fails, leaves a record that says so."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

import prov4ml
from provml_lightning.errors import StorageWarning
from provml_lightning.query.overview import read_overview
from provml_lightning.runtime import active
from tests.training import Digits, digits, trainer

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)
    handler = signal.getsignal(signal.SIGINT)  # Lightning ignores it after a Ctrl-C
    yield
    signal.signal(signal.SIGINT, handler)


def index(run: str | Path) -> dict[str, Any]:
    return dict(json.loads(Path(run, "run.json").read_text()))


def parameters(run: str | Path) -> dict[str, Any]:
    return prov4ml.list_parameters(str(run))


class OwnError(Exception):
    """An error that only the user knows."""


def fail(*_: Any, **__: Any) -> None:
    raise OwnError("loss is 42, password=hunter2")


HOOKS = {
    # Before the loggers learn of the training there is nothing to record.
    "configure_optimizers": 0,
    "on_fit_start": 0,
    "on_train_start": 0,
    "on_train_batch_start": 0,
    "training_step": 0,
    "on_before_optimizer_step": 0,
    "on_train_batch_end": 0,
    "on_validation_epoch_end": 4,
    "on_train_epoch_end": 4,
    "on_save_checkpoint": 4,
    "on_train_end": 4,
    "teardown": 4,
}


@pytest.mark.parametrize(("hook", "rows"), HOOKS.items())
def test_an_exception_in_a_hook_is_the_users_and_the_run_failed_with_it(
    hook: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Digits, hook, fail)
    logger = prov4ml.ProvMLLogger()
    with pytest.raises(OwnError, match="loss is 42"):
        trainer(logger, max_epochs=1, enable_checkpointing=True).fit(Digits(), digits(), digits())
    assert index(logger.log_dir)["status"] == "failed"
    told = Path(logger.log_dir, "prov_version_0.json").read_text()
    assert f"{__name__}.OwnError" in told
    assert "loss is 42" in told
    assert "hunter2" not in told
    if rows:
        assert len(prov4ml.get_metric(logger.log_dir, "loss")) == rows


def test_an_exception_in_test_after_a_good_fit_is_a_failed_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1)
    model = Digits()
    teacher.fit(model, digits(), digits())
    assert index(logger.log_dir)["status"] == "completed"
    monkeypatch.setattr(model, "test_step", fail)
    with pytest.raises(OwnError):
        teacher.test(model, digits(), verbose=False)
    assert index(logger.log_dir)["status"] == "failed"


def test_what_is_told_after_a_failure_does_not_mend_it(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = prov4ml.ProvMLLogger()
    model = Digits()
    monkeypatch.setattr(model, "training_step", fail)
    with pytest.raises(OwnError):
        trainer(logger).fit(model, digits(), digits())
    prov4ml.log_param("seen", value=True)
    prov4ml.end_run()
    assert index(logger.log_dir)["status"] == "failed"
    assert parameters(logger.log_dir)["seen"] is True


def test_a_training_that_succeeds_after_one_that_failed_completes_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logger = prov4ml.ProvMLLogger()
    model = Digits()
    monkeypatch.setattr(model, "training_step", fail)
    with pytest.raises(OwnError):
        trainer(logger).fit(model, digits(), digits())
    trainer(logger, max_epochs=1).fit(Digits(), digits(), digits())
    prov4ml.log_param("seen", value=True)
    prov4ml.end_run()
    assert index(logger.log_dir)["status"] == "completed"
    (note,) = read_overview(logger.log_dir).notes
    assert note.startswith("an earlier part failed: ")
    assert "OwnError: loss is 42" in note
    assert "hunter2" not in note


def test_ctrl_c_is_an_interrupted_run_whatever_the_user_tells_it_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(model: Digits) -> None:
        if model.global_step == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Digits, "on_train_batch_start", lambda self, *_: interrupt(self))
    logger = prov4ml.ProvMLLogger()
    with pytest.raises(SystemExit):
        trainer(logger).fit(Digits(), digits(), digits())
    assert index(logger.log_dir)["status"] == "interrupted"
    assert prov4ml.get_metric(logger.log_dir, "loss")["step"].tolist() == [0, 1]
    prov4ml.log_param("seen", value=True)
    prov4ml.end_run()
    assert index(logger.log_dir)["status"] == "interrupted"


TERMINATED = """
import pathlib, time, prov4ml
from tests.training import Digits, digits, trainer

class Slow(Digits):
    def on_train_batch_end(self, *_):
        pathlib.Path("started").touch()
        time.sleep(0.05)

logger = prov4ml.ProvMLLogger()
trainer(logger, max_epochs=1000).fit(Slow(), digits(), digits())
"""


def test_sigterm_is_an_interrupted_run() -> None:
    with _started(TERMINATED) as process:
        _await(Path("started"), process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)
    run = Path("prov/lightning_logs/version_0")
    assert index(run)["status"] == "interrupted"
    assert len(prov4ml.get_metric(run, "loss")) >= 1


@contextmanager
def _started(program: str, *before: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [*before, sys.executable, "-W", "ignore", "-c", program]
    environment = {"PYTHONPATH": f"{HERE / 'src'}:{HERE}", "PATH": os.defpath}
    with subprocess.Popen(command, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def _await(path: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 90
    while not path.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_folder_that_vanishes_is_a_warning_and_the_training_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logger = prov4ml.ProvMLLogger()
    monkeypatch.setattr(
        Digits, "on_train_epoch_end", lambda _: shutil.rmtree(logger.log_dir, ignore_errors=True)
    )
    teacher = trainer(logger)
    with pytest.warns(StorageWarning, match="version_0"):
        teacher.fit(Digits(), digits(), digits())
    assert teacher.state.finished
    assert teacher.global_step == 8
    active.leave(active.innermost())


def test_nothing_that_goes_wrong_while_documents_are_written_leaves_finalize(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logger = prov4ml.ProvMLLogger()
    logger.log_metrics({"loss": 1.0}, 0)
    with monkeypatch.context() as patch:
        patch.setattr("provml_lightning.runtime.run.compile_run", fail)
        with pytest.warns(StorageWarning, match="documents were not written: loss is 42"):
            logger.finalize("failed")
    logger.finalize("failed")
    assert prov4ml.get_metric(logger.log_dir, "loss")["value"].tolist() == [1.0]


class Full:
    """A disk that takes no file longer than this, until it is lifted."""

    def __init__(self, size: int) -> None:
        self._old = resource.getrlimit(resource.RLIMIT_FSIZE)
        self._size = size

    def __enter__(self) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self._size, self._old[1]))

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._old)


class Verbose(Digits):
    def training_step(self, batch: Any) -> torch.Tensor:
        self.log_dict({f"m{number}": float(number) for number in range(200)})
        return super().training_step(batch)


def test_a_disk_that_is_full_for_a_while_loses_nothing_and_is_noted() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1)
    logger.log_metrics({"before": 1.0})
    with Full(30_000), pytest.warns(StorageWarning) as caught:
        teacher.fit(Verbose(), digits(), digits())
    assert any("the disk takes nothing more" in str(warning.message) for warning in caught)
    assert teacher.state.finished
    logger.log_metrics({"after": 1.0})
    prov4ml.end_run()

    for name, length in (("m0", 4), ("m199", 4), ("loss", 4), ("before", 1), ("after", 1)):
        assert len(prov4ml.get_metric(logger.log_dir, name)) == length
    assert index(logger.log_dir)["status"] == "completed"
    told = Path(logger.log_dir, "prov_version_0.json").read_text()
    assert "the disk took nothing" in told


FILLED = """
import os, pathlib, sys, prov4ml
from tests.training import Digits, digits, trainer

class Filling(Digits):
    def on_train_batch_start(self, batch, batch_idx):
        if batch_idx == 1 and self.current_epoch == 0:
            with open("disk/filler", "wb", buffering=0) as filler:
                try:
                    while True:
                        filler.write(b"x" * 4096)
                except OSError:
                    pass

    def training_step(self, batch):
        self.log_dict({f"m{number}": float(number) for number in range(100)})
        return super().training_step(batch)

    def on_train_end(self):
        pathlib.Path("filler-size").write_text(str(os.path.getsize("disk/filler")))
        os.remove("disk/filler")

logger = prov4ml.ProvMLLogger(save_dir="disk/prov")
teacher = trainer(logger, max_epochs=3)
teacher.fit(Filling(), digits(), digits())
prov4ml.end_run()
assert teacher.global_step == 12
import shutil
shutil.copytree("disk/prov", "prov")
"""


@pytest.mark.skipif(
    subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode != 0,  # noqa: S607
    reason="needs a user namespace to mount a small disk in",
)
def test_a_disk_that_really_is_full_stops_no_training() -> None:
    Path("disk").mkdir()
    mounted = 'mount -t tmpfs -o size=4m tmpfs disk && exec "$0" "$@"'
    with _started(FILLED, "unshare", "-rm", "sh", "-c", mounted) as process:
        assert process.wait(100) == 0
    run = Path("prov/lightning_logs/version_0")
    assert int(Path("filler-size").read_text()) > 1_000_000
    assert index(run)["status"] == "completed"
    assert prov4ml.get_metric(run, "loss")["step"].tolist() == list(range(12))
    assert prov4ml.get_metric(run, "m99")["value"].tolist() == [99.0] * 12
    assert "the disk took nothing" in Path(run, "prov_version_0.json").read_text()
