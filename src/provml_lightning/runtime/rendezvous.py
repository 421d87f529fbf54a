"""How the processes of one launch find the same run, where no process group connects them.

Rank zero leaves a note in the project's folder, under a name that only this launch has; the
others look for it. Torchrun, SLURM and MPI name the launch in each process's environment.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import platform
import time
from typing import TYPE_CHECKING, Any

from provml_lightning.errors import StorageError
from provml_lightning.storage.index import write_whole
from provml_lightning.storage.liveness import process_start

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["find_note", "leave_note", "note_path"]

_LAUNCH = (
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "MASTER_ADDR",
    "MASTER_PORT",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "PMIX_NAMESPACE",
    "PMI_JOBID",
    "LSB_JOBID",
    "WORLD_SIZE",
)
_LONGEST_WAIT = 60.0
# Rank zero may have started, and left its note, this long before another process did.
_HEAD_START = 600.0

_turns = itertools.count()


def note_path(project: Path, experiment: str) -> Path:
    """Return where this launch's note about its next run lies; every call is the next run."""
    launch = {name: os.environ.get(name) for name in _LAUNCH}
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE"):
        parent = os.getppid()  # all processes are children of one launcher
        launch |= {"launcher": f"{parent}-{process_start(parent)}"}
    told = json.dumps([experiment, next(_turns), launch], sort_keys=True)
    return project / f".provml-{hashlib.sha256(told.encode()).hexdigest()[:24]}.json"


def leave_note(path: Path, directory: str | None) -> None:
    """Tell the other ranks where the run lies, or that it could not be made.

    Raises:
        StorageError: The note cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer = {"host": platform.node(), "pid": os.getpid(), "start": process_start(os.getpid())}
        note = {"directory": directory, "time": time.time(), **writer}
        write_whole(path, json.dumps(note).encode())
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}") from error


def find_note(path: Path, longest: float = _LONGEST_WAIT) -> str | None:
    """Wait for rank zero's note, at most ``longest`` [s]; None where it could make no run.

    Raises:
        StorageError: There is no note after that time.
    """
    deadline = time.monotonic() + longest
    while time.monotonic() < deadline:
        try:
            note = json.loads(path.read_bytes())
            if _is_of_this_launch(note):
                return None if note["directory"] is None else str(note["directory"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        time.sleep(0.05)
    raise StorageError(
        f"rank zero told within {longest:.0f} s nothing of where the run lies (looked for {path})."
        " All ranks must call start_run, with the same folder on a shared disk; or give use_run_id="
    )


def _is_of_this_launch(note: dict[str, Any]) -> bool:
    """Tell whether a note is not one of an earlier launch that looked the same.

    Its writer still runs, since rank zero waits for the others at its end; on another host the
    age alone can tell.
    """
    if note["host"] == platform.node() and note["start"] is not None:
        return process_start(int(note["pid"])) == int(note["start"])
    return bool(note["time"] >= time.time() - _HEAD_START)
