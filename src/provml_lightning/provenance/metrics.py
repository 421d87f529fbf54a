"""Metrics: one entity each, a member of the file that holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provml_lightning.provenance.document import literal, qualified
from provml_lightning.provenance.vocabulary import attribute, entity_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provml_lightning.domain.reading import MetricSeries, MetricsFile
    from provml_lightning.provenance.scope import Scope

__all__ = ["state_metrics"]


def state_metrics(
    scope: Scope, files: Sequence[MetricsFile], series: Sequence[MetricSeries]
) -> None:
    """State the metrics files and, as their members, the metrics.

    Source:
        PROV-DM 5.1.3 (generation), 5.6 (collections).
    """
    collections = {file.path: _state_file(scope, file) for file in files}
    for metric in series:
        entity = _state_metric(scope, metric)
        if metric.path in collections:
            scope.document.relate("hadMember", collection=collections[metric.path], entity=entity)


def _state_file(scope: Scope, file: MetricsFile) -> str:
    stated = {
        "prov:type": qualified(["prov:Collection", "provml:MetricsFile"]),
        "prov:label": file.path,
        "yprov:context": file.context,
        "dcterms:identifier": file.path,
        "dcterms:format": file.media_type,
        attribute("file_size"): file.size,
        attribute("sha256"): file.sha256,
        attribute("rows"): literal(file.rows),
    }
    entity = scope.document.element("entity", entity_id("metrics", file.context), stated)
    scope.generated(entity, None, None, "output")
    return entity


def _state_metric(scope: Scope, metric: MetricSeries) -> str:
    """State a metric; it is complete, so generated, when its last value was logged."""
    name = metric.name
    facts: dict[str, Any] = {
        "unit": metric.unit,
        "rows": metric.rows,
        "first": metric.first,
        "last": metric.last,
        "min": metric.minimum,
        "max": metric.maximum,
        "first_step": metric.first_step,
        "last_step": metric.last_step,
    }
    stated = {
        "prov:type": qualified(["provml:Metric"]),
        "prov:label": name.key,
        "yprov:context": name.context,
        "yprov:source": name.source,
        "dcterms:identifier": metric.path,
        **{attribute(fact): literal(v) for fact, v in facts.items() if v is not None},
    }
    identifier = entity_id("metric", name.context, name.key, name.source)
    entity = scope.document.element("entity", identifier, stated)
    scope.generated(entity, name.context, metric.last_time, "output")
    return entity
