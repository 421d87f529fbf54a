"""Metrics as NetCDF-4: one file a context, one group a metric."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.settings import CompressorType
from provml_lightning.errors import MissingExtraError
from provml_lightning.storage.formats.base import ROWS, Block, fitting, name_order, unreadable
from provml_lightning.storage.formats.grouped import (
    ATTRIBUTES,
    COLUMNS,
    DIMENSION,
    FILLS,
    FORMAT,
    Piece,
    blocks_of,
    group_name,
    pieces,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["NetcdfFormat"]

_ZLIB = {"compression": "gzip", "compression_opts": 4, "shuffle": True}
# Others need a plugin on the reader's side too.
_FILTERS: dict[CompressorType | bool | None, dict[str, Any]] = {
    CompressorType.NONE: {},
    CompressorType.ZIP: _ZLIB,
    None: _ZLIB,
    True: _ZLIB,
    False: {},
}


class NetcdfFormat:
    """A NetCDF-4 file, as netCDF4 and xarray open it.

    Args:
        compressor: None, True or zip: zlib; False or none: none.

    Raises:
        MissingExtraError: h5netcdf is not installed.
        UnsupportedFormatError: Not every reader of NetCDF has such a compressor.
    """

    suffix = ".nc"
    media_type = "application/netcdf"

    def __init__(self, compressor: CompressorType | bool | None = None) -> None:
        self._filters = fitting("NetCDF", compressor, _FILTERS)
        try:
            import h5netcdf  # noqa: F401
        except ImportError as error:
            raise MissingExtraError("h5netcdf", "netcdf", "keep metrics as NetCDF") from error

    def write(self, path: Path, blocks: Iterable[Block]) -> int:
        """Write a group for each metric in chunks of 100 000 rows; return the rows written [1]."""
        import h5netcdf

        rows = 0
        with h5netcdf.File(path, "w") as root:
            root.attrs["provml_format"] = FORMAT
            group: Any = None
            for piece in pieces(blocks):
                if piece.start == 0:
                    group = self._group(root, piece)
                group.resize_dimension(DIMENSION, piece.stop)
                for name, column in piece.columns.items():
                    group.variables[name][piece.start : piece.stop] = column
                if piece.unit and "unit" not in group.attrs:
                    group.attrs["unit"] = _shown(piece.unit)
                rows += piece.stop - piece.start
        return rows

    def scan(self, path: Path) -> Iterator[Block]:
        """Return everything in the file."""
        import h5netcdf

        with unreadable(path), h5netcdf.File(path, "r") as root:
            groups = [(_name(group), group) for group in root.groups.values()]
            for name, group in sorted(groups, key=lambda item: name_order(item[0])):
                yield from blocks_of(name, group.attrs.get("unit"), group.variables)

    def read(self, path: Path, name: MetricKey) -> Iterator[Block]:
        """Return one metric's values; only its group is read."""
        import h5netcdf

        with unreadable(path), h5netcdf.File(path, "r") as root:
            group = root.groups.get(group_name(name))
            if group is not None:
                yield from blocks_of(name, group.attrs.get("unit"), group.variables)

    def count(self, path: Path) -> int:
        """Read every value back and return the rows [1]."""
        import h5netcdf

        with unreadable(path), h5netcdf.File(path, "r") as root:
            return sum(_count(group.variables["value"]) for group in root.groups.values())

    def context_of(self, path: Path) -> str | None:
        """Return the context of the first group."""
        import h5netcdf

        with unreadable(path), h5netcdf.File(path, "r") as root:
            return next(_name(group) for group in root.groups.values()).context

    def _group(self, root: Any, piece: Piece) -> Any:
        group = root.create_group(group_name(piece.name))
        # An attribute of NetCDF holds no NUL and no null: ``key`` is exact, the rest is to be read.
        group.attrs["key"] = json.dumps(piece.name)
        for attribute, text in zip(("name", "context", "source"), piece.name, strict=True):
            if text is not None:
                group.attrs[attribute] = _shown(text)
        group.dimensions = {DIMENSION: None}
        for name, kind in COLUMNS.items():
            variable = group.create_variable(
                name,
                (DIMENSION,),
                kind,
                chunks=(piece.stop,),
                fillvalue=FILLS.get(name),
                **self._filters,
            )
            for attribute, text in ATTRIBUTES.get(name, {}).items():
                variable.attrs[attribute] = text
        return group


def _name(group: Any) -> MetricKey:
    return MetricKey(*json.loads(group.attrs["key"]))


def _shown(text: str) -> str:
    return text.replace("\0", "\N{SYMBOL FOR NULL}")


def _count(values: Any) -> int:
    return sum(len(values[start : start + ROWS]) for start in range(0, values.shape[0], ROWS))
