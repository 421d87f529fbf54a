"""What every form of metrics files has in common."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from provml_lightning.errors import StorageError, UnsupportedFormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from provml_lightning.domain.reading import MetricKey
    from provml_lightning.domain.settings import CompressorType

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

__all__ = [
    "FEW",
    "ROWS",
    "Block",
    "MetricsFormat",
    "block_order",
    "fitting",
    "groups",
    "name_order",
    "unreadable",
]

# The most rows that are handled at once: of a block, a row group, a chunk.
ROWS = 100_000
# Up to so many rows, metrics are handled together: one call of NumPy for each would take longer
# than what it does.
FEW = 10_000

T = TypeVar("T")


class Block(NamedTuple):
    """Consecutive values of one metric from one writer, shape (rows,) each.

    Absent steps and epochs are ``point_log.ABSENT``; times are UTC [ns].
    """

    name: MetricKey
    unit: str | None
    rank: int
    segment: int
    time: Integers
    step: Integers
    epoch: Integers
    value: Floats


class MetricsFormat(Protocol):
    """A form of metrics files: one file or folder a context, written whole, read by parts.

    Times are kept in µs.
    """

    suffix: str
    media_type: str

    def write(self, path: Path, blocks: Iterable[Block]) -> int:
        """Write blocks, which come in :func:`block_order`; return the rows written [1].

        Raises:
            OSError: The disk did not take them.
        """

    def scan(self, path: Path) -> Iterator[Block]:
        """Return everything in the file, in :func:`block_order`.

        Raises:
            StorageError: It cannot be read.
        """

    def read(self, path: Path, name: MetricKey) -> Iterator[Block]:
        """Return one metric's values, in :func:`block_order`.

        Raises:
            StorageError: They cannot be read.
        """

    def count(self, path: Path) -> int:
        """Read the file back whole and return its rows [1].

        Raises:
            StorageError: It cannot be read.
        """

    def context_of(self, path: Path) -> str | None:
        """Return the context of a file that has rows, without reading them.

        Raises:
            StorageError: It cannot be read.
        """


def block_order(block: Block) -> tuple[bytes, bool, bytes, int, int]:
    """Return what blocks are sorted by: metric and source as UTF-8, rank, segment.

    Within a writer the values keep the order in which they were logged.

    Source:
        Parquet compares strings by their bytes; row-group statistics need the same order.
    """
    return (*name_order(block.name), block.rank, block.segment)


def name_order(name: MetricKey) -> tuple[bytes, bool, bytes]:
    """Return what the metrics of a context are sorted by."""
    return name.key.encode(), name.source is not None, (name.source or "").encode()


def groups(blocks: Iterable[Block], rows: int = ROWS) -> Iterator[list[Block]]:
    """Return blocks in lists of at most ``rows`` rows; a block of more has its own.

    A full list does not wait for the next block, which would be one more in memory.
    """
    group: list[Block] = []
    held = 0
    for block in blocks:
        if group and held + len(block.value) > rows:
            yield group
            group, held = [], 0
        group.append(block)
        held += len(block.value)
        if held >= rows:
            yield group
            group, held = [], 0
    if group:
        yield group


def fitting(
    form: str,
    compressor: CompressorType | bool | None,
    known: Mapping[CompressorType | bool | None, T],
) -> T:
    """Return what a form makes of a compressor.

    Raises:
        UnsupportedFormatError: The form has no such compressor.
    """
    try:
        return known[compressor]
    except KeyError:
        named = ", ".join(repr(kind.value) for kind in known if kind and kind is not True)
        raise UnsupportedFormatError(
            f"use_compressor={compressor!r} does not fit {form}; choose True, False or one of"
            f" {named}"
        ) from None


@contextmanager
def unreadable(path: Path) -> Iterator[None]:
    """Translate what a library raises while it reads ``path``.

    Raises:
        StorageError: In place of what the library raised.
    """
    try:
        yield
    except (OSError, ValueError, LookupError, RuntimeError) as error:
        raise StorageError(f"{path} cannot be read as a metrics file: {error}") from error
