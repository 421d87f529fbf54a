"""The files that rows are appended to: CSV, and Excel's workbooks.

A file whose columns are not ours, of an older version or of CarbonAI's, is left as it is: the rows
go to the next free name, ``emissions-2.csv``.
"""

from __future__ import annotations

import csv
import errno
import io
import os
import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from provml_lightning.errors import MissingExtraError
from provml_lightning.storage.whole import take_place
from provml_lightning.wrappers.metering.columns import COLUMNS
from provml_lightning.wrappers.metering.locking import held

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from provml_lightning.wrappers.metering.columns import Row

__all__ = ["append_csv", "append_excel", "require_openpyxl"]


def append_csv(path: Path, rows: Sequence[Row]) -> Path:
    """Append rows in one write, and return the file that they went to.

    Raises:
        OSError: They were not written; what was written of them is taken back.

    Source:
        RFC 4180, in UTF-8.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
    flags |= getattr(os, "O_BINARY", 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    for place in _places(path):
        descriptor = os.open(place, flags, 0o666)
        try:
            with held(descriptor):
                before = _before_rows(descriptor)
                if before is not None:
                    _write(descriptor, before + _lines(row.values() for row in rows))
                    return place
        finally:
            os.close(descriptor)
    raise AssertionError("there is always another name")


def append_excel(path: Path, rows: Sequence[Row]) -> Path:
    """Append rows to a workbook's first sheet, and return the file that they went to.

    The workbook is written anew beside the old one and then takes its place.

    Raises:
        OSError: They were not written; the old workbook stands.
        MissingExtraError: openpyxl is not installed.
    """
    require_openpyxl()
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY) if os.name == "posix" else None
    try:
        if folder is None:
            return _append_to_workbook(path, rows)
        with held(folder):
            return _append_to_workbook(path, rows)
    finally:
        if folder is not None:
            os.close(folder)


def require_openpyxl() -> None:
    """Tell now, and not after the first measure, that a package is missing.

    Raises:
        MissingExtraError: openpyxl is not installed.
    """
    try:
        import openpyxl  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("openpyxl", "excel", "write Excel files") from error


def _places(path: Path) -> Iterator[Path]:
    yield path
    for number in count(2):
        yield path.with_name(f"{path.stem}-{number}{path.suffix}")


def _before_rows(descriptor: int) -> bytes | None:
    """Return what has to stand before new rows; None where the file is not one of ours."""
    size = os.fstat(descriptor).st_size
    header = _lines([COLUMNS])
    if size == 0:
        return header
    os.lseek(descriptor, 0, os.SEEK_SET)
    first = os.read(descriptor, len(header))
    # git and pandas end lines without a carriage return; the columns are ours all the same.
    if first.splitlines()[:1] != header.splitlines():
        return None
    os.lseek(descriptor, -1, os.SEEK_END)
    return b"" if os.read(descriptor, 1) == b"\n" else b"\r\n"


def _lines(rows: Any) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _write(descriptor: int, content: bytes) -> None:
    written = os.write(descriptor, content)
    if written < len(content):
        with suppress(OSError):
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _append_to_workbook(path: Path, rows: Sequence[Row]) -> Path:
    for place in _places(path):
        book = _workbook(place)
        if book is None:
            continue
        sheet = book.worksheets[0]
        for row in rows:
            _append(sheet, list(row.values()))
        _replace(book, place)
        return place
    raise AssertionError("there is always another name")


def _workbook(path: Path) -> Any:
    """Return a workbook to append to, new where there is no file; None for one that is not ours."""
    import openpyxl

    if not path.exists():
        book: Any = openpyxl.Workbook()
        book.worksheets[0].title = "emissions"
        _append(book.worksheets[0], COLUMNS)
        return book
    try:
        book = openpyxl.load_workbook(path)
        first = next(book.worksheets[0].iter_rows(max_row=1, values_only=True), ())
    except OSError:
        raise
    except Exception:  # noqa: BLE001  openpyxl 3.1 raises anything on what is no workbook
        return None
    return book if first == COLUMNS else None


def _append(sheet: Any, values: Sequence[Any]) -> None:
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    texts = {n: value for n, value in enumerate(values, 1) if isinstance(value, str)}
    sheet.append([None if number in texts else value for number, value in enumerate(values, 1)])
    for number, text in texts.items():
        cell = sheet.cell(sheet.max_row, number)
        cell.value = ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", text)
        cell.data_type = "s"  # a text that begins with = is no formula


def _replace(book: Any, path: Path) -> None:
    written = path.with_name(f".{path.name}.{os.getpid()}-{time.time_ns()}")
    try:
        with written.open("xb") as file:
            book.save(file)
        take_place(written, path)
    except BaseException:
        written.unlink(missing_ok=True)
        raise
