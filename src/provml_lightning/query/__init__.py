"""Questions to finished runs, answered from their files alone."""

from __future__ import annotations

from provml_lightning.query.metrics import get_metric, list_metric_paths, list_metrics
from provml_lightning.query.projects import list_provjson_in_proj, list_runs_in_proj
from provml_lightning.query.runs import (
    get_parameter,
    list_activities,
    list_entities,
    list_parameters,
)

__all__ = [
    "get_metric",
    "get_parameter",
    "list_activities",
    "list_entities",
    "list_metric_paths",
    "list_metrics",
    "list_parameters",
    "list_provjson_in_proj",
    "list_runs_in_proj",
]
