"""Read the metric files that others wrote: CSV, NetCDF, Zarr, one file for each metric."""

from __future__ import annotations

import codecs
import io
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provml_lightning.errors import (
    MalformedDocumentError,
    MissingExtraError,
    SeriesUnavailableError,
)
from provml_lightning.query.frames import empty, from_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

__all__ = ["read_foreign"]

_SEPARATORS = ",;\t|"
_NO_NUMBER = ["", "None", "nan", "NaN"]
_NAMES = (("epochs", "epoch"), ("values", "value"), ("timestamps", "timestep", "timestamp"))


def read_foreign(file: Path | io.BytesIO, suffix: str, path: str) -> pd.DataFrame:
    """Return the values of a file that holds one metric.

    Raises:
        SeriesUnavailableError: No reader knows the file's type, or it cannot be read.
        MissingExtraError: The package that reads it is not installed.
        MalformedDocumentError: The file holds something else than a series of numbers.
    """
    reader = _READERS.get(suffix)
    if reader is None:
        known = ", ".join(_READERS)
        raise SeriesUnavailableError(f"{path}: values are read from {known}, not from {suffix!r}")
    try:
        return reader(file, path)
    except OSError as error:
        raise SeriesUnavailableError(f"{path} cannot be read: {error}") from error


def _csv(file: Path | io.BytesIO, path: str) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import csv

    data = file.read_bytes() if isinstance(file, Path) else file.getvalue()
    data = data.removeprefix(codecs.BOM_UTF8).lstrip()
    if not data:
        return empty(path)
    header = data.partition(b"\n")[0]
    separator = max(_SEPARATORS, key=lambda character: header.count(character.encode()))
    numbers = {name: pa.float64() for names in _NAMES for name in names}
    try:
        table = csv.read_csv(
            io.BytesIO(data),
            parse_options=csv.ParseOptions(delimiter=separator),
            convert_options=csv.ConvertOptions(column_types=numbers, null_values=_NO_NUMBER),
        )
    except pa.ArrowInvalid as error:
        raise MalformedDocumentError(f"{path} is not a table of numbers: {error}") from error
    return _frame({name: table[name].to_numpy() for name in table.column_names}, path)


def _netcdf(file: Path | io.BytesIO, path: str) -> pd.DataFrame:
    h5py = _extra("h5py", "netcdf", path)
    with h5py.File(file, "r") as opened:
        columns = {name: item[:] for name, item in opened.items() if _is_variable(item)}
    return _frame(columns, path)


def _is_variable(item: Any) -> bool:
    """Tell a variable from a dimension without one, as NetCDF-4 marks it, and from a group."""
    return hasattr(item, "shape") and not bytes(item.attrs.get("NAME", b"")).startswith(
        b"This is a netCDF dimension but not a netCDF variable"
    )


def _zarr(file: Path | io.BytesIO, path: str) -> pd.DataFrame:
    zarr = _extra("zarr", "zarr", path)
    if not isinstance(file, Path):
        raise SeriesUnavailableError(f"{path} cannot be read inside an archive: unpack it")
    try:
        arrays = dict(zarr.open_group(str(file), mode="r").arrays())
    except (KeyError, ValueError) as error:
        raise SeriesUnavailableError(f"{path} is not a Zarr group: {error}") from error
    return _frame({name: array[:] for name, array in arrays.items()}, path)


def _extra(package: str, extra: str, path: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtraError(package, extra, f"read {path}") from error


def _frame(columns: dict[str, Any], path: str) -> pd.DataFrame:
    chosen = [next((columns[one] for one in names if one in columns), None) for names in _NAMES]
    epochs, values, times = chosen
    if values is None:
        raise MalformedDocumentError(
            f"{path} has no column of values; its columns are {', '.join(map(repr, columns))}"
        )
    unknown = [None] * len(values)
    epochs = unknown if epochs is None else epochs
    return from_columns(epochs, values, unknown if times is None else times, name=path)


_READERS: dict[str, Callable[[Path | io.BytesIO, str], pd.DataFrame]] = {
    ".csv": _csv,
    ".nc": _netcdf,
    ".zarr": _zarr,
}
