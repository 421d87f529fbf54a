"""Runs as a user makes them, and the command line in this process."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import prov4ml as library
from provml_lightning.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

HOSTILE = "[bold]x\x1b[31m\r\n:smile:"


@pytest.fixture
def prov4ml(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command as on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    return lambda *arguments: CliRunner().invoke(app, [str(one) for one in arguments])


def log_something() -> None:
    for step, value in enumerate((2.0, 0.5, 1.0)):
        library.log_metric("loss", value, library.Context.TRAINING, step=step)
    library.log_metric(HOSTILE, float("nan"), "my/own", step=0)
    library.log_param("lr", 0.1)
    library.log_param("lr", 0.01)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with one finished run, ``digits_0``."""
    with library.start_run("digits", provenance_save_dir=tmp_path / "prov"):
        log_something()
    return tmp_path / "prov"


@pytest.fixture
def finished(project: Path) -> Path:
    return project / "digits_0"


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A run as SIGKILL leaves it: the files of one that was open, of a process that is no more."""
    with library.start_run("dead", provenance_save_dir=tmp_path / "alive") as run:
        log_something()
        copy = tmp_path / "killed" / "dead_0"
        shutil.copytree(run.directory, copy)
    journal = copy / "journal" / "rank-00000.jsonl"
    text, changed = re.subn(
        r'"process_start":\d+', '"process_start":1', journal.read_text(), count=1
    )
    assert changed
    journal.write_text(text)
    return copy
