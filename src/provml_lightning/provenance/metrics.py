"""Metrics: one entity each, a member of the file that holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.provenance.scope import described, facts
from provml_lightning.provenance.vocabulary import entity_id

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
            scope.document.relate(
                "hadMember", {"prov:collection": collections[metric.path], "prov:entity": entity}
            )


def _state_file(scope: Scope, file: MetricsFile) -> str:
    kinds = ["prov:Collection", "provml:MetricsFile"]
    attributes = {
        "dcterms:identifier": file.path,
        "dcterms:format": file.media_type,
        **facts({"file_size": file.size, "sha256": file.sha256, "rows": file.rows}),
    }
    stated = described(kinds, file.path, file.context, None, attributes)
    entity = scope.document.element("entity", entity_id("metrics", file.context), stated)
    scope.generated(entity, None, None, "output")
    return entity


def _state_metric(scope: Scope, metric: MetricSeries) -> str:
    """State a metric; it is complete, so generated, when its last value was logged.

    A time of the caller's that lies outside the run stays in the metric's file alone: the run
    made the metric while it ran.
    """
    name = metric.name
    attributes = {
        **({} if metric.path is None else {"dcterms:identifier": metric.path}),
        **facts(
            {
                "unit": metric.unit,
                "rows": metric.rows,
                "first": metric.first,
                "last": metric.last,
                "min": metric.minimum,
                "max": metric.maximum,
                "first_step": metric.first_step,
                "last_step": metric.last_step,
            }
        ),
    }
    stated = described("provml:Metric", name.key, name.context, name.source, attributes)
    identifier = entity_id("metric", name.context, name.key, name.source)
    entity = scope.document.element("entity", identifier, stated)
    time = scope.intervals[name.context].nearest(metric.last_time)
    scope.generated(entity, name.context, time, "output")
    return entity
