"""Metrics as Parquet: one table a context, sorted by metric, small and quick to read by parts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.settings import CompressorType
from provml_lightning.errors import UnsupportedFormatError
from provml_lightning.storage.formats.base import Block
from provml_lightning.storage.point_log import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa

__all__ = ["ROWS_PER_GROUP", "ParquetFormat"]

# (metric, source) → unit, in the file's own metadata
Units = dict[tuple[str, str | None], str]

ROWS_PER_GROUP = 100_000
# History: 1 is the first.
FORMAT = 1

_COMPRESSION = {
    CompressorType.NONE: "none",
    CompressorType.ZSTD: "zstd",
    CompressorType.ZIP: "gzip",
    CompressorType.LZ4: "lz4",
    None: "zstd",
    True: "zstd",
    False: "none",
}
_NAMES = ("metric", "context", "source", "rank", "segment")


class ParquetFormat:
    """Parquet with zstd, delta-encoded steps and times, and byte-stream-split values.

    Args:
        compressor: None or True: zstd 3; False: none; else one of none, zstd, zip, lz4.

    Raises:
        UnsupportedFormatError: Parquet has no such compressor.
    """

    suffix = ".parquet"
    media_type = "application/vnd.apache.parquet"

    def __init__(self, compressor: CompressorType | bool | None = None) -> None:
        try:
            self._compression = _COMPRESSION[compressor]
        except KeyError:
            fitting = ", ".join(repr(str(kind)) for kind in CompressorType if kind in _COMPRESSION)
            raise UnsupportedFormatError(
                f"use_compressor={compressor!r} does not fit Parquet; choose True, False or one of"
                f" {fitting}"
            ) from None

    def write(self, path: Path, blocks: Iterable[Block]) -> int:
        """Write blocks in groups of 100 000 rows; return the rows written [1]."""
        import pyarrow.parquet as pq

        rows = 0
        units: Units = {}
        writer = pq.ParquetWriter(
            path,
            _schema(),
            compression=self._compression,
            compression_level=3 if self._compression == "zstd" else None,
            use_dictionary=list(_NAMES),
            column_encoding={
                "step": "DELTA_BINARY_PACKED",
                "epoch": "DELTA_BINARY_PACKED",
                "timestamp": "DELTA_BINARY_PACKED",
                "value": "BYTE_STREAM_SPLIT",
            },
            store_schema=False,  # the columns are plain strings to every reader
            write_statistics=True,
            sorting_columns=[pq.SortingColumn(0), pq.SortingColumn(2)],
        )
        with writer:
            for group in _groups(blocks):
                units |= {
                    (block.name.key, block.name.source): block.unit for block in group if block.unit
                }
                table = _table(group)
                writer.write_table(table, row_group_size=ROWS_PER_GROUP)
                rows += table.num_rows
            listed = [[*name, unit] for name, unit in units.items()]
            writer.add_key_value_metadata(
                {"provml.format": str(FORMAT), "provml.units": json.dumps(listed)}
            )
        return rows

    def scan(self, path: Path) -> Iterator[Block]:
        """Return everything in the file."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            units = _units(file)
            for group in range(file.num_row_groups):
                yield from _blocks(file.read_row_group(group), units)

    def read(self, path: Path, name: MetricKey) -> Iterator[Block]:
        """Return one metric's values; only row groups that can hold it are read."""
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            units = _units(file)
            for group in range(file.num_row_groups):
                if not _may_hold(file, group, name.key):
                    continue
                table = file.read_row_group(group)
                source = pc.is_null if name.source is None else lambda c: pc.equal(c, name.source)
                mask = pc.and_(pc.equal(table["metric"], name.key), source(table["source"]))
                yield from _blocks(table.filter(mask), units)

    def count(self, path: Path) -> int:
        """Read every value back and return the rows [1]."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            return sum(
                len(file.read_row_group(group)["value"].drop_null())
                for group in range(file.num_row_groups)
            )


def _schema() -> pa.Schema:
    import pyarrow as pa

    text = pa.string()
    return pa.schema(
        [
            pa.field("metric", text, nullable=False),
            pa.field("context", text),
            pa.field("source", text),
            pa.field("step", pa.int64()),
            pa.field("epoch", pa.int64()),
            pa.field("value", pa.float64(), nullable=False),
            pa.field("timestamp", pa.timestamp("us", "UTC"), nullable=False),
            pa.field("rank", pa.int32(), nullable=False),
            pa.field("segment", pa.int32(), nullable=False),
        ]
    )


def _groups(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Return blocks in lists of at most 100 000 rows (a block has no more)."""
    group: list[Block] = []
    rows = 0
    for block in blocks:
        if group and rows + len(block.value) > ROWS_PER_GROUP:
            yield group
            group, rows = [], 0
        group.append(block)
        rows += len(block.value)
    if group:
        yield group


def _table(group: list[Block]) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    lengths = np.array([len(block.value) for block in group])
    codes = np.repeat(np.arange(len(group), dtype=np.int32), lengths)

    def repeated(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.DictionaryArray.from_arrays(codes, pa.array(values, kind)).cast(kind)

    def optional(name: str) -> pa.Array:
        numbers = np.concatenate([getattr(block, name) for block in group])
        return pa.array(numbers, mask=numbers == ABSENT)

    time = np.concatenate([block.time for block in group])
    columns = [
        repeated([block.name.key for block in group], pa.string()),
        repeated([block.name.context for block in group], pa.string()),
        repeated([block.name.source for block in group], pa.string()),
        optional("step"),
        optional("epoch"),
        pa.array(np.concatenate([block.value for block in group])),
        pa.array(time // 1000).cast(pa.timestamp("us", "UTC")),
        repeated([block.rank for block in group], pa.int32()),
        repeated([block.segment for block in group], pa.int32()),
    ]
    return pa.Table.from_arrays(columns, schema=_schema())


def _units(file: Any) -> Units:
    listed = json.loads((file.metadata.metadata or {}).get(b"provml.units", b"[]"))
    return {(key, source): unit for key, source, unit in listed}


def _may_hold(file: Any, group: int, key: str) -> bool:
    statistics = file.metadata.row_group(group).column(0).statistics
    if statistics is None or not statistics.has_min_max:
        return True
    wanted = key.encode()
    return bool(statistics.min.encode() <= wanted <= statistics.max.encode())


def _blocks(table: pa.Table, units: Units) -> Iterator[Block]:
    """Cut a table where metric, source or writer changes."""
    import numpy as np

    if not table.num_rows:
        return
    names = [table[column].combine_chunks().dictionary_encode() for column in _NAMES]
    codes = [column.indices.fill_null(-1).to_numpy(zero_copy_only=False) for column in names]
    changes = np.flatnonzero(np.any([np.diff(code) != 0 for code in codes], axis=0)) + 1
    starts = [0, *changes.tolist()]
    step, epoch = (table[name].fill_null(ABSENT).to_numpy() for name in ("step", "epoch"))
    value = table["value"].to_numpy()
    time = table["timestamp"].cast("int64").to_numpy() * 1000
    for start, stop in zip(starts, [*starts[1:], table.num_rows], strict=True):
        metric, context, source, rank, segment = (column[start].as_py() for column in names)
        rows = slice(start, stop)
        yield Block(
            MetricKey(metric, context, source), units.get((metric, source)), rank, segment,
            time[rows], step[rows], epoch[rows], value[rows],
        )  # fmt: skip
