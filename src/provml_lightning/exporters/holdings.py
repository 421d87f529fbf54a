"""What lies in a run's folder: every file once, nothing from outside."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from mimetypes import MimeTypes
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

__all__ = ["METADATA", "Holding", "list_files", "take_stock"]

METADATA = "ro-crate-metadata.json"
_TEMPORARY = re.compile(r"\..*\.tmp")
_UNKNOWN = "application/octet-stream"
_TYPES = {
    ".dot": "text/vnd.graphviz",
    ".jsonl": "application/x-ndjson",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".points": _UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class Holding:
    """A file, or a folder that the run speaks of as one thing.

    Attributes:
        path: Relative to the run's folder.
        size: Bytes, of a folder the sum over its files [B].
        sha256: Digest in hex; None for a folder.
        media_type: None for a folder.
    """

    path: str
    size: int
    sha256: str | None = None
    media_type: str | None = None


def list_files(directory: Path) -> dict[str, Path]:
    """Return all files below a folder by their relative paths, sorted.

    A link counts as the file that it leads to, unless that lies elsewhere. Files that are being
    written just now, and a crate's own metadata, are left out.
    """
    found = {path.relative_to(directory).as_posix(): path for path in _walk(directory)}
    return {name: found[name] for name in sorted(found) if name != METADATA}


def take_stock(
    directory: Path, folders: Collection[str], media_types: Mapping[str, str]
) -> list[Holding]:
    """Return what a run's folder holds.

    Args:
        directory: The run's folder.
        folders: Relative paths of the folders that stand for all that they hold.
        media_types: Media types by relative path, where they are known.
    """
    sizes: dict[str, int] = {}
    holdings: list[Holding] = []
    for name, path in list_files(directory).items():
        folder = next((f"{up}" for up in PurePosixPath(name).parents if f"{up}" in folders), None)
        if folder is not None:
            sizes[folder] = sizes.get(folder, 0) + path.stat().st_size
        elif _is_text(name):
            holdings.append(_file(name, path, media_types))
    whole = [Holding(folder, size) for folder, size in sizes.items()]
    return sorted([*holdings, *whole], key=lambda holding: holding.path)


def _walk(directory: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(directory):  # links to folders are not followed
        for name in names:
            path = Path(folder, name)
            if not _TEMPORARY.fullmatch(name) and _is_inside(path, directory):
                yield path


def _is_inside(path: Path, directory: Path) -> bool:
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):  # a link to nowhere, or in a circle
        return False
    return target.is_file() and target.is_relative_to(directory)


def _is_text(name: str) -> bool:
    """Tell whether a file's name is text: an IRI cannot hold another."""
    return name.encode(errors="replace").decode() == name


def _file(name: str, path: Path, media_types: Mapping[str, str]) -> Holding:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.tell()
    return Holding(name, size, digest, media_types.get(name) or _media_type(name))


def _media_type(name: str) -> str:
    suffix = PurePosixPath(name).suffix.lower()
    # Python's own table alone, so that every machine says the same.
    return _TYPES.get(suffix) or MimeTypes().guess_type(f"x{suffix}")[0] or _UNKNOWN
