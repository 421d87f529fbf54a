"""Metrics as Zarr, format 3: one store a context, one group a metric."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.settings import CompressorType
from provml_lightning.errors import MissingExtraError
from provml_lightning.storage.formats.base import Block, fitting, name_order, unreadable
from provml_lightning.storage.formats.grouped import (
    ATTRIBUTES,
    DIMENSION,
    FILLS,
    FORMAT,
    blocks_of,
    group_name,
    pieces,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["ZarrFormat"]

_CODECS: dict[CompressorType | bool | None, dict[str, Any] | None] = {
    CompressorType.NONE: None,
    CompressorType.ZIP: {"name": "gzip", "configuration": {"level": 5}},
    CompressorType.ZSTD: {"name": "zstd", "configuration": {"level": 3}},
    CompressorType.BLOSC_ZSTD: {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 5}},
    CompressorType.LZ4: {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5}},
    None: {"name": "zstd", "configuration": {"level": 3}},
    True: {"name": "zstd", "configuration": {"level": 3}},
    False: None,
}


class ZarrFormat:
    """A Zarr store with consolidated metadata, as xarray opens it.

    Args:
        compressor: None, True or zstd: zstd; False or none: none; zip: gzip; blosc_zstd; lz4:
            Blosc with LZ4.

    Raises:
        MissingExtraError: zarr 3 is not installed.
        UnsupportedFormatError: Zarr has no such compressor.
    """

    suffix = ".zarr"
    media_type = "application/vnd.zarr"

    def __init__(self, compressor: CompressorType | bool | None = None) -> None:
        self._codec = fitting("Zarr", compressor, _CODECS)
        try:
            import zarr.codecs  # noqa: F401  zarr 2 has none
        except ImportError as error:
            raise MissingExtraError("zarr>=3", "zarr", "keep metrics as Zarr") from error

    def write(self, path: Path, blocks: Iterable[Block]) -> int:
        """Write a group for each metric in chunks of 100 000 rows; return the rows written [1]."""
        import zarr

        rows = 0
        root = zarr.create_group(path, zarr_format=3, attributes={"provml_format": FORMAT})
        group: Any = None
        arrays: dict[str, Any] = {}
        for piece in pieces(blocks):
            if piece.start == 0:
                group = root.create_group(group_name(piece.name), attributes=_named(piece.name))
                arrays = {name: self._array(group, name, c) for name, c in piece.columns.items()}
            else:
                for name, column in piece.columns.items():
                    arrays[name].resize((piece.stop,))
                    arrays[name][piece.start :] = column
            if piece.unit and "unit" not in group.attrs:
                group.attrs["unit"] = piece.unit
            rows += piece.stop - piece.start
        with warnings.catch_warnings():
            # It tells that format 3 has consolidated metadata by convention, not by its text.
            warnings.filterwarnings("ignore", message="Consolidated metadata is currently not")
            zarr.consolidate_metadata(path, zarr_format=3)
        return rows

    def scan(self, path: Path) -> Iterator[Block]:
        """Return everything in the store."""
        with unreadable(path):
            groups = [(_name(group), group) for _, group in _opened(path).groups()]
            for name, group in sorted(groups, key=lambda item: name_order(item[0])):
                yield from blocks_of(name, group.attrs.get("unit"), dict(group.arrays()))

    def read(self, path: Path, name: MetricKey) -> Iterator[Block]:
        """Return one metric's values; only its group is read."""
        with unreadable(path):
            group = _opened(path).get(group_name(name))
            if group is not None:
                yield from blocks_of(name, group.attrs.get("unit"), dict(group.arrays()))

    def count(self, path: Path) -> int:
        """Read every value back and return the rows [1]."""
        with unreadable(path):
            return sum(_count(group["value"]) for _, group in _opened(path).groups())

    def context_of(self, path: Path) -> str | None:
        """Return the context of the first group."""
        with unreadable(path):
            return next(_name(group) for _, group in _opened(path).groups()).context

    def _array(self, group: Any, name: str, column: Any) -> Any:
        fill = {"_FillValue": FILLS[name]} if name in FILLS else {}
        return group.create_array(
            name,
            data=column,
            chunks=column.shape,
            compressors=self._codec,
            fill_value=FILLS.get(name, 0),
            dimension_names=[DIMENSION],
            attributes={**fill, **ATTRIBUTES.get(name, {})},
            # Chunks of values are written even if they are all zero: a missing one is a loss.
            config={"write_empty_chunks": name == "value"},
        )


def _opened(path: Path) -> Any:
    import zarr

    return zarr.open_group(path, mode="r")


def _named(name: MetricKey) -> dict[str, str | None]:
    return {"name": name.key, "context": name.context, "source": name.source}


def _name(group: Any) -> MetricKey:
    attributes = group.attrs
    return MetricKey(attributes["name"], attributes["context"], attributes["source"])


def _count(values: Any) -> int:
    """Return the rows of an array, having read each chunk; a missing one would read as zeros."""
    if missing := values.nchunks - values.nchunks_initialized:
        raise ValueError(f"{missing} of {values.nchunks} chunks of {values.name} are missing")
    (size,) = values.chunks
    return sum(len(values[start : start + size]) for start in range(0, values.shape[0], size))
