"""What the forms with one group a metric share: its name, its arrays, its attributes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.names import file_name
from provml_lightning.storage.formats.base import ROWS, Block
from provml_lightning.storage.point_log import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy as np

    from provml_lightning.domain.reading import MetricKey

    Columns = dict[str, np.ndarray[Any, Any]]

__all__ = [
    "ATTRIBUTES",
    "COLUMNS",
    "DIMENSION",
    "FILLS",
    "FORMAT",
    "Piece",
    "blocks_of",
    "group_name",
    "pieces",
]

# History: 1 is the first.
FORMAT = 1

DIMENSION = "row"
COLUMNS = {
    "step": "i8",
    "epoch": "i8",
    "value": "f8",
    "timestamp": "i8",
    "rank": "i4",
    "segment": "i4",
}
# What stands for "absent"; the other columns have no such value.
FILLS = {"step": ABSENT, "epoch": ABSENT}
# As the CF conventions and xarray have it.
ATTRIBUTES = {
    "timestamp": {
        "units": "microseconds since 1970-01-01",
        "calendar": "proleptic_gregorian",
    }
}


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one metric from ``start`` on: 100 000, fewer only at its end."""

    name: MetricKey
    unit: str | None
    start: int
    columns: Columns

    @property
    def stop(self) -> int:
        """The row after the last [1]."""
        return self.start + len(self.columns["value"])


def pieces(blocks: Iterable[Block]) -> Iterator[Piece]:
    """Return blocks as pieces, so that each fills a chunk whichever writers it comes from."""
    for name, own in itertools.groupby(blocks, key=lambda block: block.name):
        start, unit = 0, None
        waiting: list[Columns] = []
        for block in own:
            unit = unit or block.unit
            waiting.append(_columns(block))
            while sum(len(columns["value"]) for columns in waiting) >= ROWS:
                joined = _joined(waiting)
                piece = Piece(name, unit, start, _cut(joined, 0, ROWS))
                waiting = [_cut(joined, ROWS, None)]
                start = piece.stop
                yield piece
        last = _joined(waiting)
        if len(last["value"]):
            yield Piece(name, unit, start, last)


def blocks_of(name: MetricKey, unit: str | None, arrays: Mapping[str, Any]) -> Iterator[Block]:
    """Return what a metric's arrays hold, cut where the writer changes."""
    import numpy as np

    for start in range(0, arrays["value"].shape[0], ROWS):
        columns = {name: arrays[name][start : start + ROWS] for name in COLUMNS}
        writers = np.diff(columns["rank"]).astype(bool) | np.diff(columns["segment"]).astype(bool)
        starts = [0, *(np.flatnonzero(writers) + 1).tolist()]
        for first, stop in itertools.zip_longest(starts, starts[1:]):
            part = _cut(columns, first, stop)
            yield Block(
                name, unit, int(part["rank"][0]), int(part["segment"][0]),
                part["timestamp"] * 1000, part["step"], part["epoch"], part["value"],
            )  # fmt: skip


def group_name(name: MetricKey) -> str:
    """Return the name of a metric's group, which no other metric of the context has.

    Source:
        NetCDF names begin with a letter, digit or underscore; in Zarr ``__`` at the beginning and
        the name ``zarr.json`` are reserved.
    """
    encoded = file_name(name.key) if name.source is None else file_name(name.key, name.source)
    return encoded if encoded[0].isalnum() and encoded != "zarr.json" else f"_~{encoded}"


def _columns(block: Block) -> Columns:
    import numpy as np

    rows = len(block.value)
    return {
        "step": block.step,
        "epoch": block.epoch,
        "value": block.value,
        "timestamp": block.time // 1000,
        "rank": np.full(rows, block.rank, COLUMNS["rank"]),
        "segment": np.full(rows, block.segment, COLUMNS["segment"]),
    }


def _joined(parts: list[Columns]) -> Columns:
    import numpy as np

    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}


def _cut(columns: Columns, start: int, stop: int | None) -> Columns:
    return {name: column[start:stop] for name, column in columns.items()}
