"""One process at a time where a run's files are rewritten; the log calls need no such thing."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["alone"]


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other processes and threads out of the same block for the same folder.

    Two who compile a run at once would each replace what the other has just written, and the one
    with the older view could undo a seal. A process that dies lets go. Where folders cannot be
    locked (some network file systems, Windows) nobody waits.

    Source:
        flock(2): the lock belongs to the open file, so it holds between threads too, and a child
        born by fork shares it, which is why it is given up in so many words.
    """
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)
