"""Which version a logger will have, before anything is on disk."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from threading import Lock

from provml_lightning.errors import ConfigurationError, ProvMLError
from provml_lightning.storage.index import read_index
from provml_lightning.storage.layout import RunLayout

__all__ = ["promise_version", "require_inside", "version_of"]

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


def version_of(root: Path, run_uuid: str, promised: int) -> int:
    """Return the number that a run got in another process; the promised one where it has none yet.

    It gets a higher one where somebody else was faster.
    """
    for number in sorted(number for number in _on_disk(root) if number >= promised):
        with suppress(ProvMLError):  # nobody's run, or one that cannot be read
            known = read_index(RunLayout(root / f"version_{number}").index)
            if known is not None and known.uuid == run_uuid:
                return number
    return promised


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
