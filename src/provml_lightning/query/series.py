"""Read the values of one metric, in whatever form they were left."""

from __future__ import annotations

from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from provml_lightning.errors import SeriesUnavailableError, StorageError
from provml_lightning.query.embedded import is_cut, parse
from provml_lightning.query.literals import text_of
from provml_lightning.query.locations import locate

if TYPE_CHECKING:
    import pandas as pd

    from provml_lightning.domain.reading import MetricKey
    from provml_lightning.query.dialects import Element
    from provml_lightning.query.documents import Document

__all__ = ["read_series"]


def read_series(
    document: Document, name: MetricKey, path: str | None, element: Element
) -> pd.DataFrame:
    """Return the values of a metric as ``get_metric`` gives them.

    Raises:
        SeriesUnavailableError: They are not there, or were cut when they were written.
    """
    if document.unsettled is not None:
        return _from_storage(document.unsettled.directory, name)
    lists = _embedded(document, element)
    if any(map(is_cut, lists)):
        return _in_place_of_the_cut(document, name, path)
    if lists:
        from provml_lightning.query.frames import from_columns

        epochs, values, times = (parse(text, name.key) for text in lists)
        return from_columns(epochs, values, times, name=f"{document.name}: metric {name.key!r}")
    if path is None:
        raise SeriesUnavailableError(f"{document.name} names no file for the metric {name.key!r}")
    return _from_file(document, name, path)


def _embedded(document: Document, element: Element) -> list[str]:
    """Return the lists of epochs, values and timestamps if the document itself holds them."""
    keys = document.dialect.embedded
    if keys is None or keys[1] not in element.attributes:
        return []
    return [text_of(element.attributes.get(key)) or "[]" for key in keys]


def _in_place_of_the_cut(document: Document, name: MetricKey, path: str | None) -> pd.DataFrame:
    cut = (
        f"{document.name}: the series of metric {name.key!r} was cut to its ends when it was"
        " written ('...' stands for the rest)"
    )
    if path is None:
        raise SeriesUnavailableError(f"{cut}, and no file of it is named")
    try:
        return _from_file(document, name, path)
    except SeriesUnavailableError as error:
        raise SeriesUnavailableError(f"{cut}, and its file cannot be read: {error}") from error


def _from_file(document: Document, name: MetricKey, path: str) -> pd.DataFrame:
    from provml_lightning.query.foreign import read_foreign
    from provml_lightning.query.tables import read_parquet

    found = locate(document, path)
    suffix = PurePath(path).suffix.lower()
    if suffix == ".parquet":
        return read_parquet(found, name, path)
    if not document.dialect.paths_from_document:
        return read_foreign(found, suffix, path)
    if isinstance(found, Path):
        return _from_own(found, name, path)
    with TemporaryDirectory() as folder:
        unpacked = Path(folder, PurePath(path).name)
        unpacked.write_bytes(found.getvalue())
        return _from_own(unpacked, name, path)


def _from_own(file: Path, name: MetricKey, path: str) -> pd.DataFrame:
    from provml_lightning.query.frames import from_arrow
    from provml_lightning.storage.series import read_file

    try:
        table = read_file(file, name)
    except StorageError as error:
        raise SeriesUnavailableError(str(error)) from error
    if not table.num_rows:
        raise SeriesUnavailableError(
            f"{path} has no value of metric {name.key!r}, context {name.context!r}, source"
            f" {name.source!r}: it is not the file that the document speaks of"
        )
    return from_arrow(table)


def _from_storage(directory: Path, name: MetricKey) -> pd.DataFrame:
    from provml_lightning.query.frames import from_arrow
    from provml_lightning.storage.layout import RunLayout
    from provml_lightning.storage.series import read_series as read_stored

    table = read_stored(RunLayout(directory), name)
    if not table.num_rows:
        raise SeriesUnavailableError(f"the files of {directory} have no value of {name.key!r}")
    return from_arrow(table)
