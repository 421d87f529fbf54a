"""Metrics as CSV: one table a context, for every spreadsheet; plain, gzip or zstd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.domain.settings import CompressorType
from provml_lightning.errors import ConfigurationError, StorageError
from provml_lightning.storage.formats.arrow import only, schema, to_blocks, to_tables
from provml_lightning.storage.formats.base import Block, fitting, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Any

    import pyarrow as pa

    from provml_lightning.domain.reading import MetricKey

__all__ = ["CsvFormat"]

_COMPRESSION = {
    CompressorType.NONE: None,
    CompressorType.ZIP: "gzip",
    CompressorType.ZSTD: "zstd",
    None: None,
    True: "gzip",
    False: None,
}
_SUFFIXES = {None: ".csv", "gzip": ".csv.gz", "zstd": ".csv.zst"}
_MEDIA_TYPES = {None: "text/csv", "gzip": "application/gzip", "zstd": "application/zstd"}
# Numbers are not quoted, so nothing that is in one can separate.
_NEVER = frozenset('0123456789+-.enaif"\r\n\0')
_READ_AT_ONCE = 8 << 20  # bytes


class CsvFormat:
    r"""CSV with a header, texts quoted, numbers not.

    An absent step, epoch, source, context or unit is empty; an empty text is ``""``. Floats are
    the shortest digits that read back as the same float64, ``nan``, ``inf`` and ``-inf``.

    Args:
        separator: One ASCII character that is in no number.
        compressor: None, False or none: plain; True or zip: gzip; zstd.

    Raises:
        ConfigurationError: The separator cannot work.
        UnsupportedFormatError: The compressor does not fit.

    Source:
        RFC 4180, but lines end in ``\n``; empty and ``""`` as PostgreSQL's COPY tells them apart.
    """

    def __init__(
        self, separator: str = ",", compressor: CompressorType | bool | None = None
    ) -> None:
        if len(separator) != 1 or not separator.isascii() or separator in _NEVER:
            raise ConfigurationError(
                f"csv_separator={separator!r} must be one ASCII character that is in no number:"
                r" ',', ';', '|' or '\t'"
            )
        self._separator = separator
        self._compression = fitting("CSV", compressor, _COMPRESSION)
        self.suffix = _SUFFIXES[self._compression]
        self.media_type = _MEDIA_TYPES[self._compression]

    def write(self, path: Path, blocks: Iterable[Block]) -> int:
        """Write a header and a line for each value; return the values written [1]."""
        import pyarrow as pa
        from pyarrow import csv

        rows = 0
        columns = schema(unit=True)
        written = columns.set(columns.get_field_index("timestamp"), pa.field("timestamp", "string"))
        options = csv.WriteOptions(include_header=False, delimiter=self._separator)
        with pa.output_stream(path, compression=self._compression) as stream:
            stream.write((self._separator.join(columns.names) + "\n").encode())
            with csv.CSVWriter(stream, written, write_options=options) as writer:
                for _, table in to_tables(blocks, columns):
                    writer.write_table(_with_iso_times(table))
                    rows += table.num_rows
        return rows

    def scan(self, path: Path) -> Iterator[Block]:
        """Return everything in the file."""
        for table in self._tables(path):
            yield from to_blocks(table)

    def read(self, path: Path, name: MetricKey) -> Iterator[Block]:
        """Return one metric's values; what comes after it is not read."""
        for table in self._tables(path):
            if table["metric"][0].as_py().encode() > name.key.encode():
                return
            yield from to_blocks(only(table, name))

    def count(self, path: Path) -> int:
        """Read every line back and return the values [1]."""
        return sum(len(table["value"].drop_null()) for table in self._tables(path))

    def context_of(self, path: Path) -> str | None:
        """Return the context of the first line."""
        first = next(iter(self._tables(path)))
        return first["context"][0].as_py()  # type: ignore[no-any-return]

    def _tables(self, path: Path) -> Iterator[pa.Table]:
        """Return the lines in parts; the header tells the separator."""
        import pyarrow as pa
        from pyarrow import csv

        with unreadable(path):
            with self._opened(path) as stream:
                parse = csv.ParseOptions(delimiter=_separator(stream.read(7), path))
            parse.newlines_in_values = True
            columns = schema(unit=True)
            convert = csv.ConvertOptions(
                column_types=columns,
                include_columns=columns.names,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            )
            size = csv.ReadOptions(block_size=_READ_AT_ONCE)
            with self._opened(path) as stream, csv.open_csv(stream, size, parse, convert) as reader:
                yield from (pa.Table.from_batches([batch]) for batch in reader if len(batch))

    def _opened(self, path: Path) -> Any:
        import pyarrow as pa

        return pa.input_stream(path, compression=self._compression)


def _with_iso_times(table: pa.Table) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    times = pc.utf8_replace_slice(table["timestamp"].cast(pa.string()), 10, 11, "T")
    return table.set_column(table.column_names.index("timestamp"), "timestamp", times)


def _separator(start: bytes, path: Path) -> str:
    if not start.startswith(b"metric") or len(start) < len(b"metric,"):
        raise StorageError(f"{path} is not a metrics file: it does not begin with 'metric'")
    return start[-1:].decode("ascii", "replace")
