"""Files behind URLs, seen through fsspec, by which Lightning writes them."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import Any, NamedTuple

from provml_lightning.domain.redaction import redact
from provml_lightning.errors import StorageError

__all__ = ["RemoteFile", "local_path", "look_at"]

_TAGS = ("ETag", "etag", "md5Hash", "checksum")  # as the stores call what tells contents apart


class RemoteFile(NamedTuple):
    """What a store says of a file, or of all files in a folder.

    Attributes:
        tag: Differs between contents that lay at one URL; "" where the store says nothing.
        size: Bytes, of a folder the sum over its files [B].
        changed: When it was written, UTC [ns]; 0 where the store does not say.
        files: Number of files; None for a file.
    """

    tag: str
    size: int
    changed: int
    files: int | None


def local_path(url: str) -> Path | None:
    """Return the path that a URL of this machine names, such as ``file:///tmp/x``, else None."""
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in {"file", "local"}:
        return None
    from fsspec.core import url_to_fs

    return Path(url_to_fs(url)[1])


def look_at(url: str) -> RemoteFile | None:
    """Return what a store says of a file, without reading it; None where there is none.

    Raises:
        StorageError: The store cannot be asked, or does not tell how large the file is.
    """
    from fsspec.core import url_to_fs

    try:
        system, path = url_to_fs(url)
        found = system.info(path)
        is_folder = found["type"] == "directory"
        files = list(system.find(path, detail=True).values()) if is_folder else [found]
        size = sum(int(one["size"]) for one in files)
    except FileNotFoundError:
        return None
    except Exception as error:  # a store's own library raises anything
        told = redact(f"{url} cannot be looked at: {type(error).__name__}: {error}")
        raise StorageError(told) from error
    changed = _changed(system, path)
    tags = [str(found[name]) for name in _TAGS if found.get(name)]
    return RemoteFile("".join(tags[:1]), size, changed, len(files) if is_folder else None)


def _changed(system: Any, path: str) -> int:
    try:
        told = system.modified(path)
        known = told if told.tzinfo else told.replace(tzinfo=UTC)  # as stores mean it
        return int(known.timestamp() * 1e9)
    except Exception:  # noqa: BLE001  most stores do not tell it of folders, some of nothing
        return 0
