"""Every metric of a run in short: as the document says, else as the values themselves do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from provml_lightning.errors import MissingExtraError, QueryError
from provml_lightning.query.literals import unwrap
from provml_lightning.query.metrics import Metric, metrics_of
from provml_lightning.query.series import read_series

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from provml_lightning.query.documents import Document

__all__ = ["MetricFacts", "summaries_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricFacts:
    """A metric in short; None where neither the document nor its values say.

    Attributes:
        rows: Number of values [1].
        min: Least of the values that are numbers.
        max: Greatest of them.
    """

    name: str
    context: str | None
    source: str | None
    unit: str | None
    rows: int | None
    first: float | None
    last: float | None
    min: float | None
    max: float | None


def summaries_of(document: Document, names: Collection[str] | None = None) -> Iterator[MetricFacts]:
    """Yield the metrics of a document.

    Args:
        document: Where they are.
        names: Only metrics of these names; None for all.
    """
    runs = {one.id for one in document.of_kind("activity") if document.dialect.is_run(one)}
    for metric in metrics_of(document):
        if names is None or metric.name.key in names:
            yield _facts(document, metric, runs)


def _facts(document: Document, metric: Metric, runs: set[str]) -> MetricFacts:
    stated = {
        name: unwrap(metric.element.attributes.get(f"provml:{name}"))
        for name in ("unit", "rows", "first", "last", "min", "max")
    }
    if stated["rows"] is None:
        stated |= _measured(document, metric)
    return MetricFacts(
        name=metric.name.key,
        context=None if metric.name.context in runs else metric.context,
        source=metric.name.source,
        **stated,
    )


def _measured(document: Document, metric: Metric) -> dict[str, Any]:
    """Read the values where a document says nothing about them; nothing where they are not."""
    try:
        values = read_series(document, metric.name, metric.path, metric.element)["value"]
    except (QueryError, MissingExtraError):
        return {}
    if values.empty:
        return {"rows": 0}
    low, high = values.min(), values.max()
    return {
        "rows": len(values),
        "first": float(values.iloc[0]),
        "last": float(values.iloc[-1]),
        "min": None if low != low else float(low),  # noqa: PLR0124  NaN differs from itself
        "max": None if high != high else float(high),  # noqa: PLR0124
    }
