"""Files and folders that a run uses or makes: described, copied, written."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from provml_lightning.capture.media_types import media_type
from provml_lightning.capture.payloads import write_value
from provml_lightning.capture.places import free_name, storage_error, written_whole
from provml_lightning.capture.tree import Entry, entries
from provml_lightning.domain.records import StoredFile
from provml_lightning.errors import RecordDroppedWarning, RecordError, StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["copy_into", "describe_file", "free_name", "write_value"]

_CHUNK = 1 << 20  # bytes
_MOST_NAMED = 3


def describe_file(path: Path, *, shown_as: str, without: Path | None = None) -> StoredFile:
    r"""Return size, SHA-256 and media type of a file, or of all files in a folder.

    Read in constant memory. A link that is given is followed, links inside a folder are not.

    The digest of a folder is the SHA-256 of one line per file, sorted by the bytes of its path:
    its SHA-256 in hex, two spaces, its path from the folder with ``/``, a NUL. For a folder
    without links that is
    ``find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum -z | sha256sum``.
    A link counts as a file that holds the text of its target (relative to the link, where the
    target lies in the folder), which is also how :func:`copy_into` copies one that leaves:
    a copy has the digest of its original. Empty folders, pipes and devices do not count.

    Args:
        path: The file or folder.
        shown_as: The path that the record is to show.
        without: A folder inside ``path`` that does not count, such as the run that is writing.

    Raises:
        RecordError: There is nothing at ``path``, or neither a file nor a folder.
        StorageError: A file cannot be read.
    """
    try:
        if _is_folder(path):
            return _describe_folder(path, shown_as, without)
        digest, size = _digest(path)
    except OSError as error:
        raise storage_error(path, "read it", error) from error
    return StoredFile(path=shown_as, size=size, sha256=digest, media_type=media_type(path.name))


def copy_into(source: Path, destination: Path, *, without: Path | None = None) -> None:
    """Copy a file or folder to ``destination``, which holds nothing or is whole.

    The bytes go through the file system's own copy where it has one (a clone on Btrfs and XFS,
    on the server with NFS 4.2), in constant memory. Of a folder, a link that stays inside
    becomes a relative link. One that leads out is never followed: it becomes a small file with
    the text of its target, as git writes links where it cannot make any, with one warning that
    names it. A ``destination`` inside ``source`` is not copied into itself.

    Args:
        source: The file or folder; a link is followed.
        destination: A path from :func:`free_name`, or one where nothing lies.
        without: A folder inside ``source`` that is left out, such as the run that is writing.

    Raises:
        RecordError: There is nothing at ``source``, or neither a file nor a folder.
        StorageError: ``destination`` is taken, a file cannot be read or written, the disk is full.

    Warns:
        RecordDroppedWarning: Links led out of the folder.
    """
    try:
        with written_whole(destination) as temporary:
            found = entries(source, without or destination) if _is_folder(source) else None
            _check_free(destination)
            if found is None:
                _copy_bytes(source, temporary)
            else:
                _copy_entries(found, temporary, destination)
    except OSError as error:
        raise storage_error(source, f"copy it to {destination}", error) from error
    _warn_of_leaving(source, [entry for entry in found or () if entry.leaves])


def _is_folder(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:  # ValueError: a NUL
        raise RecordError(
            f"{str(path)!r}: no such file or folder (looked from {_here()}); give a path that"
            " exists, or log a plain value with log_param"
        ) from error
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise RecordError(
            f"{str(path)!r} is a pipe, socket or device; only files and folders can be recorded"
        )
    return stat.S_ISDIR(mode)


def _here() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return "a working directory that was removed"


def _digest(path: Path) -> tuple[str, int]:
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()


def _describe_folder(path: Path, shown_as: str, without: Path | None) -> StoredFile:
    whole, total, files = hashlib.sha256(), 0, 0
    for entry in entries(path, without):
        digest, size = _digest(entry.path) if entry.link is None else _digest_of_link(entry.link)
        whole.update(f"{digest}  ".encode() + os.fsencode(entry.relative) + b"\0")
        total += size
        files += 1
    return StoredFile(
        path=shown_as,
        size=total,
        sha256=whole.hexdigest(),
        media_type="inode/directory",
        files=files,
    )


def _digest_of_link(target: str) -> tuple[str, int]:
    text = os.fsencode(target)
    return hashlib.sha256(text).hexdigest(), len(text)


def _check_free(destination: Path) -> None:
    with suppress(FileNotFoundError):
        found = destination.lstat()
        is_reserved = (
            not any(destination.iterdir())
            if stat.S_ISDIR(found.st_mode)
            else stat.S_ISREG(found.st_mode) and found.st_size == 0
        )
        if not is_reserved:
            raise StorageError(f"{destination} is taken; ask free_name() for a path")


def _copy_bytes(source: Path, destination: Path) -> None:
    with source.open("rb") as read, destination.open("xb") as write:
        # A file system that cannot (EXDEV, EOPNOTSUPP, no such call) leaves the rest to the
        # plain loop, which goes on from where both files stand and meets a real error again.
        with suppress(OSError, AttributeError):
            while os.copy_file_range(read.fileno(), write.fileno(), 1 << 30):
                pass
        shutil.copyfileobj(read, write, _CHUNK)


def _copy_entries(found: Sequence[Entry], folder: Path, destination: Path) -> None:
    folder.mkdir()
    inside = Path(os.path.realpath(destination))
    for entry in found:
        if entry.path.is_relative_to(inside):
            continue
        copy = folder / entry.relative
        copy.parent.mkdir(parents=True, exist_ok=True)
        if entry.link is None:
            _copy_bytes(entry.path, copy)
        elif entry.leaves:
            copy.write_bytes(os.fsencode(entry.link))
        else:
            copy.symlink_to(entry.link)


def _warn_of_leaving(source: Path, links: Sequence[Entry]) -> None:
    if not links:
        return
    named = ", ".join(f"{link.relative} -> {link.link}" for link in links[:_MOST_NAMED])
    warnings.warn(
        f"{source}: {len(links)} links lead out of the folder and were not followed ({named}"
        f"{', …' if len(links) > _MOST_NAMED else ''}); the copy holds the text of their targets."
        " Log the files they lead to, or a folder that holds them",
        RecordDroppedWarning,
        stacklevel=3,
    )
