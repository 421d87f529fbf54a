from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from provml_lightning.storage import liveness
from provml_lightning.storage.liveness import (
    is_running,
    process_start,
    seems_alive,
    this_process,
)

if TYPE_CHECKING:
    from pathlib import Path

linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


@linux
def test_this_process_runs_and_one_that_ended_does_not() -> None:
    here = this_process(0, forked=False)
    assert is_running(here)
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert is_running(dataclasses.replace(here, pid=child.pid)) is False


@linux
def test_a_process_id_that_was_given_again_is_another_process() -> None:
    here = this_process(0, forked=False)
    assert here.process_start is not None
    assert is_running(dataclasses.replace(here, process_start=here.process_start - 1)) is False


@pytest.mark.parametrize("place", [None, "another boot/4026531836"])
def test_of_another_machine_or_container_only_the_age_of_its_files_tells(
    place: str | None, tmp_path: Path
) -> None:
    elsewhere = dataclasses.replace(this_process(0, forked=False), place=place, pid=2**22 - 1)
    assert is_running(elsewhere) is None
    path = tmp_path / "journal"
    assert not seems_alive(elsewhere, [path])
    path.touch()
    assert seems_alive(elsewhere, [path])
    os.utime(path, (time.time() - 400, time.time() - 400))
    assert not seems_alive(elsewhere, [path])


@linux
def test_a_process_that_proc_hides_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    here = this_process(0, forked=False)
    monkeypatch.setattr(liveness, "_state_and_start", lambda _: None)
    assert is_running(here)
    assert is_running(dataclasses.replace(here, pid=2**22 - 1)) is False


@linux
def test_a_process_that_ended_and_was_not_asked_about_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    try:
        deadline = time.monotonic() + 30
        while process_start(child.pid) is not None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert process_start(child.pid) is None
        here = this_process(0, forked=False)
        assert is_running(dataclasses.replace(here, pid=child.pid)) is False
    finally:
        child.wait()
