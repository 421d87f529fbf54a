"""What lies in a folder, as a run may take it: every file and link, nothing that leads outside."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Entry", "entries"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or link below a folder.

    Attributes:
        path: Where it lies.
        relative: Its path from the folder, with ``/``.
        link: Of a link the text of its target, relative to the link where the target lies in the
            folder; None for a file.
        leaves: The link leads out of the folder.
    """

    path: Path
    relative: str
    link: str | None = None
    leaves: bool = False


def entries(root: Path, without: Path | None = None) -> list[Entry]:
    """Return the files and links below ``root``, sorted by the bytes of their relative paths.

    Links are never followed, so that nothing outside is read and no loop has no end. Sockets,
    pipes and devices are left out, empty folders too, and the folder ``without``.

    Raises:
        OSError: A folder cannot be listed.
    """
    top = Path(os.path.realpath(root))
    barred = None if without is None else os.path.realpath(without)
    found = [_entry(top, path) for path in _paths(top, barred)]
    return sorted(found, key=lambda entry: os.fsencode(entry.relative))


def _paths(top: Path, barred: str | None) -> Iterator[Path]:
    for folder, subfolders, files in os.walk(top, onerror=_raise):
        here = Path(folder)
        links = [name for name in subfolders if (here / name).is_symlink()]
        subfolders[:] = [
            name for name in subfolders if name not in links and str(here / name) != barred
        ]
        yield from (path for name in [*links, *files] if _is_kept(path := here / name))


def _is_kept(path: Path) -> bool:
    mode = path.lstat().st_mode
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _entry(top: Path, path: Path) -> Entry:
    relative = path.relative_to(top).as_posix()
    if not path.is_symlink():
        return Entry(path, relative)
    target = Path(os.path.realpath(path))
    if target.is_relative_to(top):
        return Entry(path, relative, Path(os.path.relpath(target, path.parent)).as_posix())
    return Entry(path, relative, os.fspath(path.readlink()), leaves=True)


def _raise(error: OSError) -> NoReturn:
    raise error
