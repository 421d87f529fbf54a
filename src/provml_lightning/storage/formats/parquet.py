"""Metrics as Parquet: one table a context, sorted by metric, small and quick to read by parts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.settings import CompressorType
from provml_lightning.storage.formats.arrow import only, schema, to_blocks, to_tables
from provml_lightning.storage.formats.base import ROWS, Block, fitting, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from provml_lightning.domain.reading import MetricKey

__all__ = ["ParquetFormat"]

# (metric, source) → unit, in the file's own metadata
Units = dict[tuple[str, str | None], str]

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
_DICTIONARIES = ["metric", "context", "source", "rank", "segment"]


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
        self._compression = fitting("Parquet", compressor, _COMPRESSION)

    def write(self, path: Path, blocks: Iterable[Block]) -> int:
        """Write blocks in groups of up to 100 000 rows; return the rows written [1]."""
        import pyarrow.parquet as pq

        rows = 0
        units: Units = {}
        columns = schema()
        writer = pq.ParquetWriter(
            path,
            columns,
            compression=self._compression,
            compression_level=3 if self._compression == "zstd" else None,
            use_dictionary=_DICTIONARIES,
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
            for group, table in to_tables(blocks, columns):
                units |= {
                    (block.name.key, block.name.source): block.unit for block in group if block.unit
                }
                writer.write_table(table, row_group_size=ROWS)
                rows += table.num_rows
            listed = [[*name, unit] for name, unit in units.items()]
            writer.add_key_value_metadata(
                {"provml.format": str(FORMAT), "provml.units": json.dumps(listed)}
            )
        return rows

    def scan(self, path: Path) -> Iterator[Block]:
        """Return everything in the file."""
        import pyarrow.parquet as pq

        with unreadable(path), pq.ParquetFile(path) as file:
            units = _units(file)
            for group in range(file.num_row_groups):
                yield from _blocks(file.read_row_group(group), units)

    def read(self, path: Path, name: MetricKey) -> Iterator[Block]:
        """Return one metric's values; only row groups that can hold it are read."""
        import pyarrow.parquet as pq

        with unreadable(path), pq.ParquetFile(path) as file:
            units = _units(file)
            for group in range(file.num_row_groups):
                if _may_hold(file, group, name.key):
                    yield from _blocks(only(file.read_row_group(group), name), units)

    def count(self, path: Path) -> int:
        """Read every value back and return the rows [1]."""
        import pyarrow.parquet as pq

        # Texts as codes and their dictionary, as they are in the file, are half the time; threads
        # would be twice the memory, and take the training's cores.
        with unreadable(path), pq.ParquetFile(path, read_dictionary=_DICTIONARIES[:3]) as file:
            values = (
                file.read_row_group(group, use_threads=False)["value"]
                for group in range(file.num_row_groups)
            )
            return sum(len(column) - column.null_count for column in values)

    def context_of(self, path: Path) -> str | None:
        """Return the context of the first row."""
        import pyarrow.parquet as pq

        with unreadable(path), pq.ParquetFile(path) as file:
            first = next(file.iter_batches(batch_size=1, columns=["context"]))
            return first["context"][0].as_py()  # type: ignore[no-any-return]


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
    for block in to_blocks(table):
        unit = units.get((block.name.key, block.name.source))
        yield block._replace(unit=unit) if unit else block
