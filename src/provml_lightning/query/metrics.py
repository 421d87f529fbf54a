"""The metrics of a run: which there are, where their values lie, and the values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.context import canonical_context
from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.settings import MetricsType
from provml_lightning.errors import (
    AmbiguousMetricError,
    RecordNotFoundError,
    SeriesUnavailableError,
)
from provml_lightning.query.documents import Document, load
from provml_lightning.query.literals import number_of, text_of, whole_of
from provml_lightning.query.locations import locate
from provml_lightning.query.matching import not_found
from provml_lightning.query.series import read_series

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from provml_lightning.query.dialects import Element

__all__ = ["Metric", "get_metric", "list_metric_paths", "list_metrics", "metrics_of"]

_TEXTS = ("label", "context", "source", "csv_path", "id", "unit")
_NUMBERS = ("first", "last", "min", "max")
_STATED = ("unit", "rows", *_NUMBERS)
_LISTED = 12


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of a document; ``name.context`` is as the document spells it."""

    name: MetricKey
    path: str | None
    element: Element

    @property
    def context(self) -> str | None:
        """The context in its one spelling."""
        return canonical_context(self.name.context)

    @property
    def form(self) -> str:
        """The documented form of a metric's name, ``{name}_{context}_{source}``."""
        return f"{self.name.key}_{self.context}_{self.name.source}"

    def is_called(self, name: str) -> bool:
        """Tell whether a name is the documented form, with either spelling of the context."""
        return name in (self.form, f"{self.name.key}_{self.name.context}_{self.name.source}")

    def fits(self, context: str | None, source: str | None) -> bool:
        """Tell whether the metric is of a context and a source; None is any."""
        if context is not None and self.context != canonical_context(context):
            return False
        return source is None or (self.name.source or "None") == (source or "None")


def list_metrics(
    data: dict[str, Any] | str | Path, context: str | None = None, source: str | None = None
) -> pd.DataFrame:
    """Return one row for each metric.

    Args:
        data: A PROV-JSON (dictionary or path), a run's folder or its ZIP file.
        context: Only metrics of this context, in any spelling of it.
        source: Only metrics of this source; ``"None"`` or ``""``: those without one.

    Returns:
        The columns label, context, source, csv_path (the file of the values, as the document has
        it), id, unit, rows [1], first, last, min, max; None or NaN where a document does not say.
    """
    import pandas as pd

    metrics = [metric for metric in metrics_of(load(data)) if metric.fits(context, source)]
    rows = [_row(metric) for metric in metrics]
    columns = {name: pd.Series([row[name] for row in rows], dtype=object) for name in _TEXTS}
    columns["rows"] = pd.Series([row["rows"] for row in rows], dtype="Int64")
    for name in _NUMBERS:
        columns[name] = pd.Series([row[name] for row in rows], dtype="float64")
    return pd.DataFrame(columns)


def list_metric_paths(
    data: dict[str, Any] | str | Path,
    context: str | None = None,
    source: str | None = None,
    file_type: str | None = None,
) -> dict[str, str]:
    """Return the file of each metric that has one, by the metric's identifier.

    Where several metrics share an identifier, the key is the documented form of the name,
    ``{name}_{context}_{source}``.

    Args:
        data: A PROV-JSON (dictionary or path), a run's folder or its ZIP file.
        context: Only metrics of this context, in any spelling of it.
        source: Only metrics of this source; ``"None"`` or ``""``: those without one.
        file_type: Only files of this type: ``"parquet"``, ``"csv"``, ``"zarr"``, ``"netcdf"``.

    Returns:
        A path that opens from here where the file was found, else the path that the document has.

    Raises:
        UnsupportedFormatError: There is no such file type.
    """
    document = load(data)
    metrics = metrics_of(document)
    sharing = Counter(metric.element.id for metric in metrics)
    found: dict[str, str] = {}
    opening: dict[str, str] = {}
    for metric in metrics:
        path = metric.path
        if path is None or not metric.fits(context, source) or not _is_type(path, file_type):
            continue
        if path not in opening:
            opening[path] = _opening(document, path)
        key = metric.element.id if sharing[metric.element.id] == 1 else metric.form
        found[key] = opening[path]
    return found


def get_metric(
    data: dict[str, Any] | str | Path,
    name: str | None = None,
    context: str | None = None,
    source: str | None = None,
) -> pd.DataFrame:
    """Return the values of one metric.

    Args:
        data: A PROV-JSON (dictionary or path), a run's folder or its ZIP file.
        name: The metric's name; where no metric has it, its identifier; then the documented form
            ``{name}_{context}_{source}``. None: the only metric that there is.
        context: The metric's context, in any spelling; None: the only one that has the name.
        source: The metric's source; ``"None"`` or ``""``: the one without a source.

    Returns:
        The columns step, epoch, value, timestamp (UTC) and rank, in the order of logging. Where a
        document has one counter alone, step and epoch are both that counter.

    Raises:
        RecordNotFoundError: No metric fits; the message holds the closest.
        AmbiguousMetricError: Several fit; the message holds them.
        SeriesUnavailableError: The values are not where the document says, or were cut.
    """
    document = load(data)
    metric = _one(document, name, context, source)
    return read_series(document, metric.name, metric.path, metric.element)


def metrics_of(document: Document) -> list[Metric]:
    """Return the metrics; one that is stated again with the same file is the same metric."""
    dialect = document.dialect
    found: dict[tuple[object, ...], Metric] = {}
    for place, element in enumerate(document.elements):
        if not dialect.is_metric(element):
            continue
        label, path = dialect.label_of(element), dialect.path_of(element)
        name = MetricKey(label, dialect.context_of(element), dialect.source_of(element))
        found[element.id, name, path or place] = Metric(name, path, element)
    return list(found.values())


def _one(document: Document, name: str | None, context: str | None, source: str | None) -> Metric:
    metrics = metrics_of(document)
    named = metrics if name is None else _named(metrics, name)
    if not named:
        labels = (metric.name.key for metric in metrics)
        raise not_found("metric", str(name), labels, where=document.name)
    fitting = [metric for metric in named if metric.fits(context, source)]
    if not fitting:
        raise RecordNotFoundError(
            f"{document.name} has no metric {name!r} with context {context!r} and source"
            f" {source!r}; it has (name / context / source) {_candidates(named)}"
        )
    if len(fitting) > 1:
        raise AmbiguousMetricError(
            f"{len(fitting)} metrics fit name {name!r}, context {context!r}, source {source!r};"
            f" say which (name / context / source): {_candidates(fitting)}. Their identifiers are"
            " names too: see the id column of list_metrics()"
        )
    return fitting[0]


def _named(metrics: list[Metric], name: str) -> list[Metric]:
    """Return the metrics with a name: the user's own goes before any that we or others made."""
    return (
        [metric for metric in metrics if metric.name.key == name]
        or [metric for metric in metrics if metric.element.id == name]
        or [metric for metric in metrics if metric.is_called(name)]
    )


def _candidates(metrics: list[Metric]) -> str:
    shown = [f"{m.name.key} / {m.context} / {m.name.source}" for m in metrics[:_LISTED]]
    more = f" and {len(metrics) - _LISTED} more" if len(metrics) > _LISTED else ""
    return ", ".join(shown) + more


def _row(metric: Metric) -> dict[str, Any]:
    row: dict[str, Any] = {
        "label": metric.name.key,
        "context": metric.context,
        "source": metric.name.source,
        "csv_path": metric.path,
        "id": metric.element.id,
    }
    stated = {name: metric.element.attributes.get(f"provml:{name}") for name in _STATED}
    numbers = {name: number_of(stated[name]) for name in _NUMBERS}
    return row | numbers | {"unit": text_of(stated["unit"]), "rows": whole_of(stated["rows"])}


def _opening(document: Document, path: str) -> str:
    if document.archive is not None:
        return path
    try:
        return str(locate(document, path))
    except SeriesUnavailableError:
        return path


def _is_type(path: str, file_type: str | None) -> bool:
    from provml_lightning.storage.formats import type_of

    return file_type is None or type_of(path) is MetricsType.of(str(file_type).removeprefix("."))
