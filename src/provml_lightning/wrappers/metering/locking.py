"""One writer at a time for a file that several processes write, for no longer than we may wait."""

from __future__ import annotations

import errno
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LONGEST_WAIT", "held"]

LONGEST_WAIT = 2.0  # [s]

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.005, 0.25  # [s]
_HELD = frozenset({errno.EAGAIN, errno.EACCES})


@contextmanager
def held(descriptor: int, longest: float = LONGEST_WAIT) -> Iterator[None]:
    """Hold the lock of an open file or folder; where it cannot be locked, nobody waits.

    Args:
        descriptor: The file's.
        longest: How long to wait for whoever holds it [s].

    Raises:
        BlockingIOError: It is held, and was for longer than that.

    Source:
        flock(2): it holds between threads too, since each has opened the file for itself.
    """
    try:
        import fcntl
    except ImportError:  # Windows: there an append is one write, and that is all
        yield
        return
    due, pause = time.monotonic() + longest, _SHORTEST_PAUSE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            if error.errno not in _HELD:  # this file system knows no locks
                break
            if time.monotonic() >= due:
                raise BlockingIOError(error.errno, "another process holds the file") from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
