"""Files in a ZIP that is written whole, and the same every time."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

__all__ = ["write_archive"]

_FIRST_YEAR = 1980
_READABLE = 0o100644 << 16


def write_archive(files: Mapping[str, Path], target: Path, time: datetime) -> Path:
    """Write files into a ZIP under their names, all with one time; return the ZIP.

    Raises:
        OSError: A file cannot be read, or the disk does not take the ZIP; the old one stands.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        with ZipFile(temporary, "x", ZIP_DEFLATED) as archive:  # exclusive: no link is followed
            for name, path in files.items():
                _add(archive, name, path, time)
        temporary.replace(target)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return target


def _add(archive: ZipFile, name: str, path: Path, time: datetime) -> None:
    # A name that is no text, as Linux allows, cannot stand in a ZIP as it is.
    entry = ZipInfo(os.fsencode(name).decode(errors="replace"), _clock(time))
    entry.compress_type = ZIP_DEFLATED
    entry.external_attr = _READABLE
    entry.file_size = path.stat().st_size  # so that a large one gets the fields for large ones
    with path.open("rb") as source, archive.open(entry, "w") as file:
        shutil.copyfileobj(source, file, 1 << 20)


def _clock(time: datetime) -> tuple[int, int, int, int, int, int]:
    """Return a time as a ZIP holds it.

    Source:
        PKWARE APPNOTE 4.4.6: MS-DOS time, which begins in 1980.
    """
    return (
        max(time.year, _FIRST_YEAR), time.month, time.day, time.hour, time.minute, time.second,
    )  # fmt: skip
