"""Files of a run, and the facts of what became of them.

``path`` of a fact is that of a file as it was told. Several files may have lain there one after the
other: meant is the one that did at ``time``, UTC [ns].
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Continued", "FileDeleted", "FileUsed", "StoredFile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file or folder as it was when it was recorded.

    Attributes:
        path: Where it lies; relative to the run's directory for what the run owns.
        size: Bytes, of a folder the sum over its files [B].
        sha256: Digest in hex; of a folder that of its sorted list of paths and digests. None where
            it was not read, or was gone before it could be.
        media_type: IANA media type, ``inode/directory`` for a folder.
        files: Number of files, 1 for a file [1].
    """

    path: str
    size: int
    sha256: str | None = None
    media_type: str = "application/octet-stream"
    files: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUsed:
    """A file that the record has already, such as a checkpoint, went into a context."""

    time: int
    path: str
    context: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDeleted:
    """A file is no more; ``time`` is not before that, and no later than it was seen."""

    time: int
    path: str
    context: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """The run went on from a file that another run made.

    Attributes:
        namespace: Namespace of the other run's document.
        run: Id of the other run's activity there.
        name: What the other run is called.
        file: Id of the file's entity there; None where that document has none of it.
    """

    time: int
    path: str
    namespace: str
    run: str
    name: str
    file: str | None = None
