"""``run.json``: what a run is, which files it has, and what its documents cover."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.fields import misfit
from provml_lightning.domain.records import Status
from provml_lightning.errors import MalformedDocumentError, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["FORMAT", "RunIndex", "read_index", "write_index", "write_whole"]

# History: 1 is the first.
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIndex:
    """The content of ``run.json``.

    Attributes:
        document: Name of the PROV-JSON.
        sealed: Stems of the writers whose values are in the metrics files and nowhere else.
        covers: For each writer's stem, the bytes of its journal [B] and the values of its point
            log [1] that the documents hold.
        files: Path, size [B] and SHA-256 of every file that the run has recorded.
    """

    experiment: str
    run_id: str
    uuid: str
    document: str
    status: Status
    started: str | None = None
    ended: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    ranks: list[int] = field(default_factory=list)
    sealed: list[str] = field(default_factory=list)
    covers: Mapping[str, list[int]] = field(default_factory=dict)
    files: list[Mapping[str, Any]] = field(default_factory=list)


def read_index(path: Path) -> RunIndex | None:
    """Return the index, or None where there is none yet.

    Raises:
        MalformedDocumentError: The file is not an index, or one that names files elsewhere.
        StorageError: A later version of the library wrote it, or it cannot be read.
    """
    try:
        content = json.loads(path.read_bytes())
        version = content.pop("provml_run")
        content["status"] = Status(content["status"])
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _malformed(path, repr(error)) from error
    if isinstance(version, int) and version > FORMAT:
        raise StorageError(f"{path} was written by a later version; update provml-lightning")
    return _checked(path, content)


def _checked(path: Path, content: dict[str, Any]) -> RunIndex:
    known = {name: content[name] for name in RunIndex.__dataclass_fields__ if name in content}
    if (name := misfit(RunIndex, known)) is not None:
        raise _malformed(path, f"{name}={known[name]!r}")
    try:
        index = RunIndex(**known)
    except TypeError as error:
        raise _malformed(path, str(error)) from error
    for name in (index.document, *index.sealed, *index.covers):
        if not _is_plain_name(name):
            raise _malformed(path, f"{name!r} is not the name of a file")
    return index


def _is_plain_name(name: object) -> bool:
    """Tell whether a name leads nowhere else: who sends us a run may have written it."""
    return isinstance(name, str) and name not in {"", ".", ".."} and not set(name) & set("/\\\0")


def _malformed(path: Path, why: str) -> MalformedDocumentError:
    return MalformedDocumentError(
        f"{path} is not the index of a run: {why}. Delete it, and 'prov4ml recover' writes it anew"
    )


def write_index(path: Path, index: RunIndex) -> None:
    """Write the index so that a reader sees the old one or the new one, never half of it.

    Raises:
        OSError: The disk did not take it.
    """
    content = {"provml_run": FORMAT, **asdict(index)}
    write_whole(path, json.dumps(content, indent=1).encode() + b"\n")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, make it durable, and rename it.

    Raises:
        OSError: The disk did not take it; the old file, if any, stands.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("xb") as file:  # exclusive: a planted link is not followed
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except FileExistsError:
        temporary.unlink()
        write_whole(path, content)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
