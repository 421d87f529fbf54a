"""The journal: facts as lines of JSON, one file a process, appended and never changed.

The first line says who writes; a line that was torn by a full disk or a killed process costs that
line alone.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import math
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args

from provml_lightning.domain.fields import misfit
from provml_lightning.domain.reading import Writer
from provml_lightning.domain.records import Record, Status, StoredFile
from provml_lightning.errors import RecordError, StorageError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FORMAT", "Journal", "JournalLines", "encoded", "read_journal"]

# History: 1 is the first.
FORMAT = 1

_KINDS: dict[str, type] = {kind.__name__: kind for kind in get_args(Record)}


class Journal:
    """The writing end; every call is one write of one line, or an OSError."""

    def __init__(self, path: Path, writer: Writer) -> None:
        """Make the file, which must not exist, and say who writes.

        Raises:
            FileExistsError: Another process has this name.
            OSError: The file cannot be made or the first line not be written.
        """
        self.path = path
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        self._file = os.open(path, flags, 0o666)
        self._torn = False
        try:
            self.write(_line("Writer", {"format": FORMAT, **dataclasses.asdict(writer)}))
        except OSError:
            self.close()
            raise

    def write(self, line: bytes) -> None:
        """Write a fact's line; on return it outlives this process.

        Raises:
            OSError: It was not written whole, and what was is taken back or skipped by the reader.
        """
        if self._torn:
            line = b"\n" + line
        written = os.write(self._file, line)
        if written < len(line):
            self._take_back(written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        self._torn = False

    def sync(self) -> None:
        """Make what was written outlive the machine."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _take_back(self, written: int) -> None:
        """Cut off a line that is not whole: it will come again, and must not count twice."""
        try:
            os.ftruncate(self._file, os.fstat(self._file).st_size - written)
        except OSError:
            self._torn = True


@dataclasses.dataclass(frozen=True, slots=True)
class JournalLines:
    """A journal as it was read: who wrote, what, and how many lines were torn [1]."""

    writer: Writer
    records: tuple[Record, ...]
    torn: int
    size: int


def read_journal(path: Path) -> JournalLines | None:
    """Return what a journal holds, or None where not even its first line is whole.

    Raises:
        StorageError: It cannot be read, or was written by a later version of the library.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error
    # What stands behind the last line break is a call that has not returned: no line yet.
    lines = list(_objects(content[: content.rfind(b"\n") + 1]))
    head = next((line for line in lines if line and line.get("kind") == "Writer"), None)
    if head is not None and _version(head) > FORMAT:
        raise StorageError(f"{path} was written by a later version; update provml-lightning")
    writer = None if head is None else _writer(head)
    if writer is None:
        return None
    found = [_record(line) for line in lines if line and line.get("kind") != "Writer"]
    torn = sum(line is None for line in lines) + sum(record is None for record in found)
    return JournalLines(writer, tuple(filter(None, found)), torn, len(content))


def _objects(content: bytes) -> Iterator[dict[str, Any] | None]:
    for line in content.split(b"\n"):
        if not line:
            continue
        try:
            value = json.loads(line.decode())
        except ValueError:
            value = None
        yield value if isinstance(value, dict) else None


def encoded(record: Record) -> bytes:
    """Return the line of a fact.

    Raises:
        RecordError: A field holds something else than it is for.
    """
    fields = _shallow(record)
    if (name := misfit(type(record), fields)) is not None:
        raise _refused(record, name, fields[name])
    return _line(type(record).__name__, fields)


def _line(kind: str, fields: Mapping[str, Any]) -> bytes:
    content = {"kind": kind, **_encoded(fields)}
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def _refused(record: Record, name: str, value: Any) -> RecordError:
    declared = next(field.type for field in dataclasses.fields(record) if field.name == name)
    wanted = "text" if "str" in str(declared).split(" | ") else declared
    kind = type(record).__name__.lower()
    return RecordError(
        f"{kind}: {name} must be {wanted}, not {type(value).__name__}: {value!r:.80}"
    )


def _shallow(record: Record) -> dict[str, Any]:
    values = ((field.name, getattr(record, field.name)) for field in dataclasses.fields(record))
    return {name: value for name, value in values if value is not None}


def _encoded(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": repr(float(value))}
    if isinstance(value, datetime):
        return {"$time": value.isoformat()}
    if isinstance(value, StoredFile):
        return dataclasses.asdict(value)
    if isinstance(value, Mapping):
        return {_guarded(str(key)): _encoded(item) for key, item in value.items()}
    return value


def _decoded(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value.keys() == {"$float"}:
        return float(value["$float"])
    if value.keys() == {"$time"}:
        return datetime.fromisoformat(value["$time"])
    return {key[1:] if key.startswith("$$") else key: _decoded(item) for key, item in value.items()}


def _guarded(key: str) -> str:
    """Return a key of the caller's so that it is not taken for a mark of ours."""
    return f"${key}" if key.startswith("$") else key


def _version(head: Mapping[str, Any]) -> int:
    version = head.get("format", FORMAT)
    return version if isinstance(version, int) else FORMAT


def _writer(head: Mapping[str, Any]) -> Writer | None:
    fields = {name: head[name] for name in Writer.__dataclass_fields__ if name in head}
    try:
        return None if misfit(Writer, fields) else Writer(**fields)
    except TypeError:  # it does not say everything
        return None


def _record(line: dict[str, Any]) -> Record | None:
    """Return the fact of a line; None for one that is damaged or not known to this version."""
    kind = _KINDS.get(str(line.pop("kind", "")))
    if kind is None:
        return None
    try:
        fields = {name: _decoded(value) for name, value in line.items()}
        for name in ("stored", "original", "layers"):
            if name in fields:
                fields[name] = _stored_file(fields[name])
        if "status" in fields:
            fields["status"] = Status(fields["status"])
        record: Record | None = None if misfit(kind, fields) else kind(**fields)
    except (TypeError, ValueError):
        return None
    return record


def _stored_file(fields: dict[str, Any]) -> StoredFile | None:
    return None if misfit(StoredFile, fields) else StoredFile(**fields)
