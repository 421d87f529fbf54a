"""What every form of metrics files has in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from provml_lightning.domain.reading import MetricKey

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

__all__ = ["Block", "MetricsFormat", "block_order", "name_order"]


@dataclass(frozen=True, slots=True)
class Block:
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
    """A form of metrics files: one file a context, written whole, read by parts."""

    suffix: str
    media_type: str

    def write(self, path: Path, blocks: Iterable[Block]) -> int:
        """Write blocks, which come in :func:`block_order`; return the rows written [1].

        Raises:
            OSError: The disk did not take them.
        """

    def scan(self, path: Path) -> Iterator[Block]:
        """Return everything in the file, in :func:`block_order`."""

    def read(self, path: Path, name: MetricKey) -> Iterator[Block]:
        """Return one metric's values, in :func:`block_order`."""

    def count(self, path: Path) -> int:
        """Read the file back whole and return its rows [1]."""


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
