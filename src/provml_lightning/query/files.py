"""The files of a run as they lie there today."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from provml_lightning.query.heads import own_layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provml_lightning.query.documents import Document

__all__ = ["FileFacts", "files_of"]


class FileFacts(NamedTuple):
    """A file, its path from the run's folder, and its size [B]."""

    path: str
    size: int


def files_of(document: Document, source: dict[str, Any] | str | Path) -> list[FileFacts]:
    """Return the files of a run's folder or archive, by path.

    A document that lies alone, beside files of others, has none.
    """
    if document.archive is not None:
        return sorted(_in_archive(document.archive, document.folder))
    if document.folder is None or isinstance(source, dict):
        return []
    if Path(source).is_dir() or own_layout(document.folder) is not None:
        return sorted(_below(Path(document.folder)))
    return []


def _below(folder: Path) -> Iterator[FileFacts]:
    """Yield the files below a folder; links count as links and are not followed."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            try:
                size = path.lstat().st_size
            except OSError:  # gone since, as temporary files of a running run are
                continue
            yield FileFacts(path.relative_to(folder).as_posix(), size)


def _in_archive(archive: Path, folder: Any) -> Iterator[FileFacts]:
    from zipfile import ZipFile

    prefix = "" if str(folder) == "." else f"{folder}/"
    with ZipFile(archive) as opened:
        for entry in opened.infolist():
            if not entry.is_dir() and entry.filename.startswith(prefix):
                yield FileFacts(entry.filename[len(prefix) :], entry.file_size)
