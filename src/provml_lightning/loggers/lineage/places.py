"""Where a checkpoint lies, and what one sees of it without reading it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from provml_lightning.capture.media_types import media_type
from provml_lightning.domain.files import StoredFile
from provml_lightning.runtime.run import Run

__all__ = ["Mark", "Place", "first_look", "gone_at", "is_remote", "mark_of", "place_of"]


class Mark(NamedTuple):
    """What tells a file at a path from one that took its place: node, size [B] and time [ns]."""

    node: int
    size: int
    changed: int


class Place(NamedTuple):
    """A path, how the record shows it, and whether it lies in the run's folder."""

    path: Path
    shown: str
    is_inside: bool


def is_remote(path: str) -> bool:
    """Tell whether a path is a URL, which Lightning writes to through fsspec."""
    return "://" in path


def mark_of(path: Path) -> Mark | None:
    """Return the mark of a file or folder; None where there is none."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return Mark(found.st_ino, found.st_size, found.st_mtime_ns)


def place_of(run: Run, path: str) -> Place:
    """Return where a path leads; what lies in the run's folder is shown relative to that."""
    real, folder = Path(os.path.realpath(path)), Path(os.path.realpath(run.directory))
    if real.is_relative_to(folder):
        return Place(real, real.relative_to(folder).as_posix(), is_inside=True)
    return Place(real, str(real), is_inside=False)


def first_look(place: Place, mark: Mark) -> StoredFile:
    """Return what a file is without its digest; of a folder the files as they are listed now."""
    if not place.path.is_dir():
        return StoredFile(path=place.shown, size=mark.size, media_type=media_type(place.path.name))
    sizes = [
        Path(folder, name).lstat().st_size
        for folder, _, names in os.walk(place.path)
        for name in names
    ]
    return StoredFile(
        path=place.shown, size=sum(sizes), media_type="inode/directory", files=len(sizes)
    )


def gone_at(path: Path, earliest: int, now: int) -> int:
    """Return when a file that is gone was deleted at the latest [ns].

    Its folder changed last when it was deleted, or later; the file system's clock may be some
    milliseconds behind ours.
    """
    folder = mark_of(path.parent)
    return max(earliest, min(now, folder.changed) if folder else now)
