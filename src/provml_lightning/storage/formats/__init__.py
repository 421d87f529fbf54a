"""The forms that metrics files can have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.domain.settings import CompressorType, MetricsType
from provml_lightning.storage.formats.csv import CsvFormat
from provml_lightning.storage.formats.netcdf import NetcdfFormat
from provml_lightning.storage.formats.parquet import ParquetFormat
from provml_lightning.storage.formats.zarr import ZarrFormat

if TYPE_CHECKING:
    from provml_lightning.storage.formats.base import MetricsFormat

__all__ = ["format_of", "open_format", "type_of"]

_SUFFIXES = {
    ".parquet": (MetricsType.PARQUET, None),
    ".csv": (MetricsType.CSV, None),
    ".csv.gz": (MetricsType.CSV, CompressorType.ZIP),
    ".csv.zst": (MetricsType.CSV, CompressorType.ZSTD),
    ".zarr": (MetricsType.ZARR, None),
    ".nc": (MetricsType.NETCDF, None),
}


def open_format(
    kind: MetricsType, *, separator: str = ",", compressor: CompressorType | bool | None = None
) -> MetricsFormat:
    """Return the form that a run was asked for.

    Raises:
        ConfigurationError: The separator does not fit CSV.
        MissingExtraError: The package of the form is not installed.
        UnsupportedFormatError: The compressor does not fit the form.
    """
    match kind:
        case MetricsType.PARQUET:
            return ParquetFormat(compressor)
        case MetricsType.CSV:
            return CsvFormat(separator, compressor)
        case MetricsType.ZARR:
            return ZarrFormat(compressor)
        case MetricsType.NETCDF:
            return NetcdfFormat(compressor)


def type_of(path: str) -> MetricsType | None:
    """Return the type of a metrics file from its name, None where it has none of ours."""
    suffix = _suffix(path)
    return None if suffix is None else _SUFFIXES[suffix][0]


def format_of(path: str) -> MetricsFormat | None:
    """Return the form that reads a metrics file, from its name; None where none does.

    Raises:
        MissingExtraError: The package of the form is not installed.
    """
    suffix = _suffix(path)
    if suffix is None:
        return None
    kind, compressor = _SUFFIXES[suffix]
    return open_format(kind, compressor=compressor)


def _suffix(path: str) -> str | None:
    return next((suffix for suffix in _SUFFIXES if path.lower().endswith(suffix)), None)
