"""Where a new file lies: under a name of its own, and only once it is whole."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from provml_lightning.errors import RecordError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["folder_for", "free_name", "next_version", "storage_error", "written_whole"]


def free_name(folder: Path, wanted: str, *, is_folder: bool = False) -> Path:
    """Return an unused path in ``folder``: ``wanted``, or the like with ``-2``, ``-3`` and so on.

    The number stands before the suffix (``.tar.gz`` counts as one), of a folder at the end. The
    path is reserved with an empty file (or folder), which only one process can make; what is
    written there replaces it. ``folder`` is made where it is missing.

    Raises:
        RecordError: ``wanted`` is not one name: empty, ``..``, or with a separator.
        StorageError: Nothing can be made in ``folder``.
    """
    if wanted in {"", ".", ".."} or Path(wanted).name != wanted:
        raise RecordError(f"{wanted!r} cannot be the name of a file; encode it with file_name()")
    stem, suffix = (wanted, "") if is_folder else _split(wanted)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = {path.name for path in folder.iterdir()}
        for number in count(1):
            name = wanted if number == 1 else f"{stem}-{number}{suffix}"
            if name not in taken and _reserved(folder / name, is_folder=is_folder):
                return folder / name
    except OSError as error:
        raise storage_error(folder, "make a file in it", error) from error
    raise AssertionError  # count() does not end


def folder_for(folder: Path, wanted: str) -> Path:
    """Return the folder in ``folder`` that holds the files of the model ``wanted``, or will.

    It gets ``-2`` and so on behind its name where that is another thing's: a file, or a folder
    that was copied there and must stay as it is.
    """
    names = (wanted if number == 1 else f"{wanted}-{number}" for number in count(1))
    places = (folder / name for name in names)
    own = re.compile(rf"{re.escape(wanted)}(_\d+)?(_layers)?(-\d+)?\.(pt|json)|\..*")
    return next(place for place in places if not os.path.lexists(place) or _holds(place, own))


def _holds(place: Path, names: re.Pattern[str]) -> bool:
    return place.is_dir() and all(names.fullmatch(path.name) for path in place.iterdir())


def next_version(folder: Path, stem: str) -> Path:
    """Reserve ``<stem>_<n>.pt`` in ``folder``, n being the highest plus one, from 0.

    Raises:
        StorageError: Nothing can be made in ``folder``.
    """
    numbered = re.compile(re.escape(stem) + r"_(\d+)\.pt")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = (numbered.fullmatch(path.name) for path in folder.iterdir())
        for number in count(max((int(match[1]) for match in found if match), default=-1) + 1):
            path = folder / f"{stem}_{number}.pt"
            if _reserved(path, is_folder=False):
                return path
    except OSError as error:
        raise storage_error(folder, "make a file in it", error) from error
    raise AssertionError  # count() does not end


@contextmanager
def written_whole(destination: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``destination`` that takes its place when the block ends.

    The temporary name is hidden and ends in ``.partial``: what a killed process leaves there
    never looks whole. After an exception nothing of either is left, neither the part that was
    written nor an empty reservation; an older file at ``destination`` stays as it was.
    """
    temporary = destination.with_name(f".{destination.name[:80]}.{secrets.token_hex(6)}.partial")
    destination.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield temporary
        _take_place(temporary, destination)
    except BaseException:
        _remove(temporary)
        _drop_reservation(destination)
        raise


def storage_error(path: Path, purpose: str, error: OSError) -> StorageError:
    """Return ``error`` as ours, with the path, what was tried and what to look at."""
    return StorageError(
        f"{error.filename or path}: cannot {purpose} ({error.strerror or error}); check that it"
        " exists, its permissions and the free space of its disk"
    )


def _split(name: str) -> tuple[str, str]:
    stem, suffix = os.path.splitext(name)  # noqa: PTH122  Path.stem drops a trailing dot
    if stem.endswith(".tar"):
        return stem.removesuffix(".tar"), ".tar" + suffix
    return stem, suffix


def _reserved(path: Path, *, is_folder: bool) -> bool:
    try:
        if is_folder:
            path.mkdir()
        else:
            path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _take_place(temporary: Path, destination: Path) -> None:
    try:
        temporary.replace(destination)
    except OSError:  # a reservation of the other kind; on Windows any folder that is there
        _drop_reservation(destination)
        temporary.replace(destination)


def _drop_reservation(path: Path) -> None:
    with suppress(OSError):
        found = path.lstat()
        if stat.S_ISDIR(found.st_mode):
            path.rmdir()  # removes an empty folder alone
        elif stat.S_ISREG(found.st_mode) and found.st_size == 0:
            path.unlink()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
