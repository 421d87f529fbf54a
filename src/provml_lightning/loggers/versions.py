"""Which version a logger will have, before anything is on disk."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Lock

from provml_lightning.errors import ConfigurationError

__all__ = ["promise_version", "require_inside"]

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


def require_inside(what: str, name: str) -> None:
    """Raise where a part of a run's path would lead out of the project's folder.

    Raises:
        ConfigurationError: It is absolute, or holds ``..`` or a NUL.
    """
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise ConfigurationError(
            f"{what}={name!r} would lie outside save_dir; give one without '..' and a leading '/'"
        )
