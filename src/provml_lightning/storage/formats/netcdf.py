"""Metrics as NetCDF-4: one file a context, one group a metric."""

from __future__ import annotations

import json
from contextlib import contextmanager
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
    blocks_of,
    group_name,
    pieces,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["NetcdfFormat"]

# What marks a dimension without coordinates; the number is how long it was when it was made.
_NOT_A_VARIABLE = "This is a netCDF dimension but not a netCDF variable.%10d"
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
        MissingExtraError: h5py is not installed.
        UnsupportedFormatError: Not every reader of NetCDF has such a compressor.

    Source:
        NetCDF-4 File Format Specification: an HDF5 file whose dimensions are dimension scales and
        whose objects keep the order of their creation. Written so, a group takes 7 ms of a
        processor; through h5netcdf 40 and through netCDF4 12, which then open a file of 200 groups
        in 0.4 s.
    """

    suffix = ".nc"
    media_type = "application/netcdf"

    def __init__(self, compressor: CompressorType | bool | None = None) -> None:
        self._filters = fitting("NetCDF", compressor, _FILTERS)
        try:
            import h5py  # noqa: F401
        except ImportError as error:
            raise MissingExtraError("h5py", "netcdf", "keep metrics as NetCDF") from error

    def write(self, path: Path, blocks: Iterable[Block]) -> int:
        """Write a group for each metric in chunks of 100 000 rows; return the rows written [1]."""
        import h5py

        rows = 0
        with h5py.File(path, "w", track_order=True) as root:
            root.attrs["provml_format"] = FORMAT
            group: Any = None
            for piece in pieces(blocks):
                if piece.start == 0:
                    group = self._group(root, piece.name, piece.stop)
                group[DIMENSION].resize((piece.stop,))
                for name, column in piece.columns.items():
                    group[name].resize((piece.stop,))
                    group[name][piece.start :] = column
                if piece.unit and "unit" not in group.attrs:
                    group.attrs["unit"] = _shown(piece.unit)
                rows += piece.stop - piece.start
        return rows

    def scan(self, path: Path) -> Iterator[Block]:
        """Return everything in the file."""
        with _opened(path) as root:
            groups = [(_name(group), group) for group in root.values()]
            for name, group in sorted(groups, key=lambda item: name_order(item[0])):
                yield from blocks_of(name, group.attrs.get("unit"), group)

    def read(self, path: Path, name: MetricKey) -> Iterator[Block]:
        """Return one metric's values; only its group is read."""
        with _opened(path) as root:
            group = root.get(group_name(name))
            if group is not None:
                yield from blocks_of(name, group.attrs.get("unit"), group)

    def count(self, path: Path) -> int:
        """Read every value back and return the rows [1]."""
        with _opened(path) as root:
            return sum(_count(group["value"]) for group in root.values())

    def context_of(self, path: Path) -> str | None:
        """Return the context of the first group."""
        with _opened(path) as root:
            return next(map(_name, root.values())).context

    def _group(self, root: Any, name: MetricKey, chunk: int) -> Any:
        group = root.create_group(group_name(name), track_order=True)
        # An attribute of NetCDF holds no NUL and no null: ``key`` is exact, the rest is to be read.
        group.attrs["key"] = json.dumps(name)
        for attribute, text in zip(("name", "context", "source"), name, strict=True):
            if text is not None:
                group.attrs[attribute] = _shown(text)
        shape: dict[str, Any] = {"shape": (0,), "maxshape": (None,), "chunks": (chunk,)}
        scale = group.create_dataset(DIMENSION, dtype=">f4", **shape)
        scale.make_scale(_NOT_A_VARIABLE % chunk)
        for column, kind in COLUMNS.items():
            variable = group.create_dataset(
                column, dtype=kind, fillvalue=FILLS.get(column), **shape, **self._filters
            )
            variable.dims[0].attach_scale(scale)
            if column in FILLS:
                variable.attrs["_FillValue"] = [variable.fillvalue]
            variable.attrs.update(ATTRIBUTES.get(column, {}))
        return group


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    import h5py

    with unreadable(path), h5py.File(path, "r") as root:
        yield root


def _name(group: Any) -> MetricKey:
    return MetricKey(*json.loads(group.attrs["key"]))


def _shown(text: str) -> str:
    return text.replace("\0", "\N{SYMBOL FOR NULL}")


def _count(values: Any) -> int:
    return sum(len(values[start : start + ROWS]) for start in range(0, values.shape[0], ROWS))
