"""Which version a logger will have, before anything is on disk."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Lock

__all__ = ["promise_version"]

_VERSION = re.compile(r"version_(\d+)")
_promised: set[tuple[Path, int]] = set()
_lock = Lock()


def promise_version(root: Path) -> int:
    """Return the number that the next run below ``root`` will most likely get.

    Nothing is written, and two loggers of one process are never promised the same. It is settled
    when the run opens, by an exclusive ``mkdir``.
    """
    with _lock:
        taken = {number for folder, number in _promised if folder == root} | _on_disk(root)
        number = max(taken, default=-1) + 1
        _promised.add((root, number))
        return number


def _on_disk(root: Path) -> set[int]:
    try:
        return {int(m[1]) for path in root.iterdir() if (m := _VERSION.fullmatch(path.name))}
    except (FileNotFoundError, NotADirectoryError):
        return set()
