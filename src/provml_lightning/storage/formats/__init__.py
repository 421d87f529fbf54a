"""The forms that metrics files can have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.domain.settings import CompressorType, MetricsType
from provml_lightning.errors import UnsupportedFormatError
from provml_lightning.storage.formats.parquet import ParquetFormat

if TYPE_CHECKING:
    from provml_lightning.storage.formats.base import MetricsFormat

__all__ = ["open_format"]


def open_format(
    kind: MetricsType, *, separator: str = ",", compressor: CompressorType | bool | None = None
) -> MetricsFormat:
    """Return the form that a run was asked for.

    Raises:
        UnsupportedFormatError: The compressor does not fit the form, or the form is not there.
    """
    if kind is MetricsType.PARQUET:
        return ParquetFormat(compressor)
    raise UnsupportedFormatError(
        f"metrics_file_type={kind.value!r} is not available; choose {MetricsType.PARQUET.value!r}"
        f" (separator {separator!r} is for CSV)"
    )
