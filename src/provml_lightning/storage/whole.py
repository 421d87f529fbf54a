"""Files and folders that are there whole or not at all, through any crash.

A file takes the place of another in one step. A folder cannot: the old one is set aside under a
hidden name, the new one renamed, the old one removed. After a crash in between, the old one stands
where it was set aside.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["discard", "make_durable", "measure", "standing", "standing_in", "take_place"]


def standing(path: Path) -> Path | None:
    """Return where the file or folder of this path stands today, None where it never was."""
    return next((place for place in (path, _aside(path)) if place.exists()), None)


def standing_in(folder: Path, suffix: str) -> Iterator[Path]:
    """Yield the files or folders of this suffix where they stand today; none if no such folder."""
    for place in folder.glob(f"*{suffix}"):
        path = place.with_name(place.name.removeprefix("."))
        if place == standing(path):
            yield place


def take_place(temporary: Path, path: Path) -> None:
    """Put a file or folder that is whole and durable at ``path``, in place of the old one.

    Raises:
        OSError: It cannot be renamed; the old one stands.
    """
    if temporary.is_dir():
        if path.exists():
            discard(_aside(path))
            path.rename(_aside(path))
        temporary.rename(path)
        _synchronise(path.parent)
        discard(_aside(path))
    else:
        temporary.replace(path)


def make_durable(path: Path) -> None:
    """Make a file, or a folder with all that is in it, outlive a power loss.

    Raises:
        OSError: The disk did not take it.
    """
    for place in (path, *path.rglob("*")):
        _synchronise(place)


def measure(path: Path) -> tuple[int, str]:
    """Return size [B] and SHA-256 of a file, or of all files in a folder.

    The digest of a folder is that of one line a file, sorted by path: its digest in hex, two
    spaces, its path from the folder, a NUL.
    """
    if path.is_file():
        with path.open("rb", buffering=0) as file:
            return path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()
    whole, total = hashlib.sha256(), 0
    for name, inside in sorted(_files(path)):
        size, digest = measure(inside)
        whole.update(f"{digest}  ".encode() + name + b"\0")
        total += size
    return total, whole.hexdigest()


def discard(path: Path) -> None:
    """Remove a file or folder, if it is there.

    Raises:
        OSError: It cannot be removed.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}")


def _files(folder: Path) -> Iterator[tuple[bytes, Path]]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield os.fsencode(path.relative_to(folder).as_posix()), path


def _synchronise(path: Path) -> None:
    if path.is_dir():
        with suppress(OSError):  # where folders cannot be opened or synchronised, nothing is lost
            _fsync(path)
    else:
        _fsync(path)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
