"""Samples of a layer in one file: NumPy's own format, appended chunk by chunk.

A chunk is two arrays in NPY format, one after the other: the marks (``forward``, the number of the
forward pass, and ``training``) and the samples, one of each a sample. What a killed process had
not yet appended is not there; what it had can be read.
"""

from __future__ import annotations

import errno
import io
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np

__all__ = ["ChunkFile", "read_chunks"]

_MARKS = [("forward", "<i8"), ("training", "?")]
_MARK, _HEADERS = 9, 320  # bytes: of a sample's marks, at most of a chunk's two NPY headers
_MOST_BUFFERED = 8 << 20


class ChunkFile:
    """The writing end; used by one thread.

    Args:
        path: The file; made at the first chunk.
        chunk_size: Samples in a chunk; fewer where 8 MiB are reached, or the shape changes [1].
    """

    def __init__(self, path: Path, chunk_size: int) -> None:
        self._path = path
        self._chunk_size = chunk_size
        self._parts: list[tuple[np.ndarray, np.ndarray]] = []
        self._rows = self._bytes = 0
        self._size = 0

    def after(self, samples: np.ndarray | None = None) -> int:
        """Return how large the file is at most, once all and ``samples`` are written [B]."""
        rows, size = self._rows, self._bytes
        if samples is not None:
            rows, size = rows + len(samples), size + samples.nbytes
        chunks = 2 + rows // self._chunk_size if rows else 0
        return self._size + size + _MARK * rows + _HEADERS * chunks

    def add(self, forward: int, samples: np.ndarray, *, training: bool) -> None:
        """Take the samples of one forward pass, one a row; write what makes whole chunks.

        Raises:
            OSError: The disk did not take them.
        """
        import numpy as np

        if self._parts and _form(self._parts[0][1]) != _form(samples):
            self.flush()
        marks = np.empty(len(samples), _MARKS)
        marks["forward"], marks["training"] = forward, training
        self._parts.append((marks, samples))
        self._rows += len(samples)
        self._bytes += samples.nbytes
        if self._rows >= self._chunk_size or self._bytes >= _MOST_BUFFERED:
            self._write(whole=self._bytes < _MOST_BUFFERED)

    def flush(self) -> None:
        """Write what is left.

        Raises:
            OSError: The disk did not take it.
        """
        self._write(whole=False)

    def _write(self, *, whole: bool) -> None:
        import numpy as np

        if not self._rows:
            return
        marks, samples = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        self._parts, self._rows, self._bytes = [], 0, 0
        for first in range(0, len(samples), self._chunk_size):
            chunk = slice(first, first + self._chunk_size)
            if whole and len(samples) - first < self._chunk_size:
                rest = samples[chunk].copy()  # a view would hold the whole
                self._parts, self._rows = [(marks[chunk], rest)], len(rest)
                self._bytes = rest.nbytes
                return
            self._append(marks[chunk], samples[chunk])

    def _append(self, marks: np.ndarray, samples: np.ndarray) -> None:
        from numpy.lib.format import write_array

        buffer = io.BytesIO()
        write_array(buffer, marks, allow_pickle=False)
        write_array(buffer, samples, allow_pickle=False)
        with self._path.open("ab", buffering=0) as file:
            written = file.write(buffer.getbuffer()) or 0
            if written < len(buffer.getbuffer()):
                file.truncate(self._size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        self._size += written


def read_chunks(path: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Read a layer's file, whole or cut off where its process was killed.

    Yields:
        Marks and samples of each whole chunk, of equal length.
    """
    import numpy as np

    with path.open("rb") as file:
        while True:
            try:
                marks = np.load(file, allow_pickle=False)
                samples = np.load(file, allow_pickle=False)
            except (EOFError, ValueError):  # the end, or a torn chunk, which is the last
                return
            yield marks, samples


def _form(samples: np.ndarray) -> tuple[np.dtype, tuple[int, ...]]:
    return samples.dtype, samples.shape[1:]
