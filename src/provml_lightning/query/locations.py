"""Find the file that a document names, wherever the run lies today."""

from __future__ import annotations

import io
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from provml_lightning.errors import SeriesUnavailableError
from provml_lightning.query.dialects import EXPERIMENT_DIR
from provml_lightning.query.literals import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provml_lightning.query.documents import Document

__all__ = ["locate"]

_SHOWN = 4


def locate(document: Document, path: str) -> Path | io.BytesIO:
    """Return the file, or its bytes where the document lies in an archive.

    Our documents name files relative to themselves. Others name them relative to the working
    directory of the time: the path is tried as it is and without its first parts, from the
    document's folder and the folders above, then from the current directory. A relative path
    never leads out of the folder that it starts from.

    Raises:
        SeriesUnavailableError: It is nowhere; the message holds where it was looked for.
    """
    if document.archive is not None:
        return _in_archive(document, document.archive, path)
    tried: list[str] = []
    for base, relative in _candidates(document, _parts(path)):
        candidate = Path(base, relative)
        tried.append(str(candidate))
        if _is_there(candidate, within=Path(base)):
            return candidate
    raise _nowhere(document, path, tried)


def _candidates(document: Document, path: PurePath) -> Iterator[tuple[PurePath, PurePath]]:
    if path.is_absolute():
        yield PurePath(path.anchor), path
        path = path.relative_to(path.anchor)
    if document.folder is None:
        yield Path.cwd(), path
        for folder in _experiment_folders(document):
            yield from _from_folder(
                Path.cwd() / folder, path, own=document.dialect.paths_from_document
            )
    elif document.dialect.paths_from_document:
        yield document.folder, path
    else:
        yield from _from_folder(document.folder, path)
        yield Path.cwd(), path


def _from_folder(
    folder: PurePath, path: PurePath, *, own: bool = False
) -> Iterator[tuple[PurePath, PurePath]]:
    """Yield the ways to a path from the document's folder: nearest folder, longest path first.

    From n folders above it, a file of the run is more than n parts away.
    """
    if own:
        yield folder, path
        return
    for above, base in enumerate((folder, *folder.parents)):
        for cut in range(len(path.parts) - above):
            yield base, PurePath(*path.parts[cut:])


def _experiment_folders(document: Document) -> list[str]:
    activities = document.of_kind("activity")
    folders = (text_of(one.attributes.get(key)) for one in activities for key in EXPERIMENT_DIR)
    return [folder for folder in folders if folder]


def _in_archive(document: Document, archive: Path, path: str) -> io.BytesIO:
    import zlib
    from zipfile import BadZipFile, ZipFile

    folder = document.folder or PurePosixPath()
    ways = _from_folder(folder, _parts(path), own=document.dialect.paths_from_document)
    tried = [str(PurePosixPath(base, relative)) for base, relative in ways]
    try:
        with ZipFile(archive) as opened:
            names = set(opened.namelist())
            for name in filter(names.__contains__, tried):
                return io.BytesIO(opened.read(name))
    except (BadZipFile, OSError, RuntimeError, zlib.error) as error:  # RuntimeError: encrypted
        raise SeriesUnavailableError(f"{path} in {archive} cannot be read: {error}") from error
    raise _nowhere(document, path, [f"{archive}/{name}" for name in tried])


def _parts(path: str) -> PurePath:
    """Return a path as the system that wrote it meant it."""
    windows = "\\" in path and "/" not in path
    return PurePath(PureWindowsPath(path).as_posix()) if windows else PurePath(path)


def _is_there(candidate: Path, *, within: Path) -> bool:
    try:
        return candidate.resolve(strict=True).is_relative_to(within.resolve())
    except (OSError, ValueError):  # absent, no permission, or no name that a file can have
        return False


def _nowhere(document: Document, path: str, tried: list[str]) -> SeriesUnavailableError:
    shown = ", ".join(dict.fromkeys(tried[:_SHOWN]))
    more = f" and {len(tried) - _SHOWN} more places" if len(tried) > _SHOWN else ""
    hint = "" if document.folder else ". Pass the document's path instead of a dictionary"
    return SeriesUnavailableError(
        f"{document.name} names the file {path!r}, which is not there;"
        f" looked for {shown}{more}{hint}"
    )
