"""Where a checkpoint lies, and what one sees of it without reading it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from provml_lightning.capture.media_types import media_type
from provml_lightning.capture.remote_files import local_path, look_at
from provml_lightning.domain.files import StoredFile
from provml_lightning.domain.redaction import redact
from provml_lightning.errors import StorageError
from provml_lightning.runtime.run import Run

__all__ = [
    "UNSEEN",
    "Mark",
    "Place",
    "Places",
    "first_look",
    "gone_at",
    "is_remote",
    "mark_of",
    "place_of",
]


class Mark(NamedTuple):
    """What tells a file at a path from one that took its place.

    Attributes:
        node: The file system's node; the tag that a remote store gives.
        size: Bytes; of a local folder its own [B].
        changed: When it was written [ns]; 0 where a remote store does not say.
        files: Number of files in a remote folder; None for everything else.
    """

    node: int | str
    size: int
    changed: int
    files: int | None = None


UNSEEN = Mark("unseen", 0, 0)  # of what lies, or does not lie, where a disk or store is silent


class Place(NamedTuple):
    """A path or URL, how the record shows it, and whether it lies in the run's folder."""

    path: str
    shown: str
    is_inside: bool

    @property
    def is_remote(self) -> bool:
        """Whether it is a URL, which Lightning writes to through fsspec."""
        return is_remote(self.path)


def is_remote(path: str) -> bool:
    """Tell whether a path is a URL of another machine, or of another store on this one."""
    return "://" in path and local_path(path) is None


def place_of(run: Run, path: str) -> Place:
    """Return where a path leads; what lies in the run's folder is shown relative to that."""
    if is_remote(path):
        return Place(path, redact(path), is_inside=False)
    real = Path(os.path.realpath(local_path(path) or path))
    folder = Path(os.path.realpath(run.directory))
    if real.is_relative_to(folder):
        return Place(str(real), real.relative_to(folder).as_posix(), is_inside=True)
    return Place(str(real), str(real), is_inside=False)


class Places:
    """Where paths lead; URLs that are alike without their secrets are told apart by a number."""

    def __init__(self) -> None:
        self._alike: dict[str, list[str]] = {}

    def of(self, run: Run, path: str) -> Place:
        """Return where a path leads."""
        place = place_of(run, path)
        if place.shown == place.path or not place.is_remote:
            return place
        alike = self._alike.setdefault(place.shown, [])
        if path not in alike:
            alike.append(path)
        number = alike.index(path)
        return place._replace(shown=f"{place.shown}~{number + 1}") if number else place


def mark_of(place: Place) -> Mark | None:
    """Return the mark of a file or folder; None where there is none, UNSEEN where nobody tells."""
    if place.is_remote:
        try:
            seen = look_at(place.path)
        except StorageError:
            return UNSEEN
        return seen and Mark(seen.tag, seen.size, seen.changed, seen.files)
    try:
        found = Path(place.path).stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        # Without its folder, a disk of another place may just not be there.
        return None if place.is_inside or Path(place.path).parent.exists() else UNSEEN
    except OSError:
        return UNSEEN
    return Mark(found.st_ino, found.st_size, found.st_mtime_ns)


def first_look(place: Place, mark: Mark) -> StoredFile | None:
    """Return what a file is without its digest; of a folder the files as they are listed now.

    None for what could not be looked at.
    """
    if mark == UNSEEN:
        return None
    size, files = mark.size, mark.files
    try:
        if not place.is_remote and Path(place.path).is_dir():
            sizes = _sizes(place.path)
            size, files = sum(sizes), len(sizes)
    except OSError:
        return None
    if files is None:
        return StoredFile(path=place.shown, size=size, media_type=media_type(place.shown))
    return StoredFile(path=place.shown, size=size, media_type="inode/directory", files=files)


def _sizes(path: str) -> list[int]:
    return [
        Path(folder, name).lstat().st_size for folder, _, names in os.walk(path) for name in names
    ]


def gone_at(place: Place, earliest: int, now: int) -> int:
    """Return when a file that is gone was deleted at the latest [ns].

    Its folder changed last when it was deleted, or later; the file system's clock may be some
    milliseconds behind ours. A remote store does not say when it was.
    """
    try:
        changed = now if place.is_remote else Path(place.path).parent.stat().st_mtime_ns
    except OSError:
        changed = now
    return max(earliest, min(now, changed))
