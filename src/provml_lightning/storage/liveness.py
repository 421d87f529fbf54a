"""Whether the process that wrote a file may still write to it."""

from __future__ import annotations

import os
import platform
import sys
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from provml_lightning.domain.reading import Writer

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["is_running", "process_place", "process_start", "seems_alive", "this_process"]

_FRESH = 300.0

_DEAD = frozenset("ZXx")


@cache
def process_place() -> str | None:
    """Return where process ids mean what they mean here, or None where nobody says.

    A host's name is not enough: containers share it, and each counts its own processes.

    Source:
        ``/proc/sys/kernel/random/boot_id`` and the inode of ``/proc/self/ns/pid``.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return None


def process_start(pid: int) -> int | None:
    """Return when a process of this machine started; None where it is dead or nobody says.

    Together with the process id it names one process for ever. One that has ended and that its
    parent has not asked about yet writes no more: it is dead.

    Source:
        ``/proc/<pid>/stat``, fields 3 (state) and 22 [clock ticks since boot].
    """
    state, start = _state_and_start(pid) or ("X", 0)
    return None if state in _DEAD else start


def this_process(rank: int, *, forked: bool) -> Writer:
    """Return this process as a writer of a run, its first segment."""
    pid = os.getpid()
    return Writer(
        rank=rank,
        segment=1,
        host=platform.node(),
        pid=pid,
        process_start=process_start(pid),
        place=process_place(),
        time=time.time_ns(),
        forked=forked,
    )


def is_running(writer: Writer) -> bool | None:
    """Tell whether the process that wrote still runs; None where this machine cannot tell."""
    if writer.place is None or writer.place != process_place():
        return None
    known = _state_and_start(writer.pid)
    if known is None:
        return _exists(writer.pid)
    state, start = known
    return state not in _DEAD and start == writer.process_start


def seems_alive(writer: Writer, files: Sequence[Path]) -> bool:
    """Tell whether a process still writes; of another machine's only the files' age tells."""
    running = is_running(writer)
    if running is not None:
        return running
    newest = max((path.stat().st_mtime for path in files if path.exists()), default=0.0)
    return time.time() - newest < _FRESH


def _state_and_start(pid: int) -> tuple[str, int] | None:
    """Return what ``/proc`` says of a process; None where it says nothing."""
    if sys.platform != "linux":
        return None
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return state, int(fields[18])
    except (OSError, ValueError, IndexError):
        return None


def _exists(pid: int) -> bool:
    """Tell whether there is a process, where ``/proc`` hides those of other users."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
