"""Provenance of machine learning runs, recorded as it happens and stated in W3C PROV.

Names are resolved on first use (PEP 562), so that importing the package loads neither torch nor
Lightning nor pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from provml_lightning.__about__ import __version__

if TYPE_CHECKING:
    from provml_lightning.api.flops import log_flops_per_batch, log_flops_per_epoch
    from provml_lightning.api.items import log_context, log_input, log_output
    from provml_lightning.api.measures import (
        log_carbon_metrics,
        log_current_execution_time,
        log_system_metrics,
        register_final_metric,
    )
    from provml_lightning.api.models import log_dataset, log_model, save_model_version
    from provml_lightning.api.records import log_artifact, log_metric, log_param
    from provml_lightning.api.reproducing import log_execution_command, log_source_code
    from provml_lightning.api.runs import end_run, start_run
    from provml_lightning.api.several import log_metrics, log_params
    from provml_lightning.callbacks.flops import FlopsMonitor
    from provml_lightning.callbacks.monitors import CarbonMonitor, SystemMonitor
    from provml_lightning.domain.context import Context
    from provml_lightning.domain.folding import FoldOperation
    from provml_lightning.domain.settings import CompressorType, MetricsType
    from provml_lightning.loggers.itwinai import ProvMLItwinAILogger
    from provml_lightning.loggers.provml import ProvMLLogger
    from provml_lightning.query import (
        get_metric,
        get_parameter,
        list_activities,
        list_entities,
        list_metric_paths,
        list_metrics,
        list_parameters,
        list_provjson_in_proj,
        list_runs_in_proj,
    )
    from provml_lightning.wrappers.functions import ProvenanceTrackedFunction
    from provml_lightning.wrappers.models import (
        ProvenanceTrackedModel,
        WeightDistributionTrackedModel,
    )
    from provml_lightning.wrappers.power_meter import PowerMeter

__all__ = [
    "CarbonMonitor",
    "CompressorType",
    "Context",
    "FlopsMonitor",
    "FoldOperation",
    "MetricsType",
    "PowerMeter",
    "ProvMLItwinAILogger",
    "ProvMLLogger",
    "ProvenanceTrackedFunction",
    "ProvenanceTrackedModel",
    "SystemMonitor",
    "WeightDistributionTrackedModel",
    "__version__",
    "end_run",
    "get_metric",
    "get_parameter",
    "list_activities",
    "list_entities",
    "list_metric_paths",
    "list_metrics",
    "list_parameters",
    "list_provjson_in_proj",
    "list_runs_in_proj",
    "log_artifact",
    "log_carbon_metrics",
    "log_context",
    "log_current_execution_time",
    "log_dataset",
    "log_execution_command",
    "log_flops_per_batch",
    "log_flops_per_epoch",
    "log_input",
    "log_metric",
    "log_metrics",
    "log_model",
    "log_output",
    "log_param",
    "log_params",
    "log_source_code",
    "log_system_metrics",
    "register_final_metric",
    "save_model_version",
    "start_run",
]

_HOMES = {
    "api.flops": ("log_flops_per_batch", "log_flops_per_epoch"),
    "api.items": ("log_context", "log_input", "log_output"),
    "api.measures": (
        "log_carbon_metrics",
        "log_current_execution_time",
        "log_system_metrics",
        "register_final_metric",
    ),
    "api.models": ("log_dataset", "log_model", "save_model_version"),
    "api.records": ("log_artifact", "log_metric", "log_param"),
    "api.reproducing": ("log_execution_command", "log_source_code"),
    "api.runs": ("end_run", "start_run"),
    "api.several": ("log_metrics", "log_params"),
    "callbacks.flops": ("FlopsMonitor",),
    "callbacks.monitors": ("CarbonMonitor", "SystemMonitor"),
    "domain.context": ("Context",),
    "domain.folding": ("FoldOperation",),
    "domain.settings": ("CompressorType", "MetricsType"),
    "loggers.itwinai": ("ProvMLItwinAILogger",),
    "loggers.provml": ("ProvMLLogger",),
    "query": (
        "get_metric",
        "get_parameter",
        "list_activities",
        "list_entities",
        "list_metric_paths",
        "list_metrics",
        "list_parameters",
        "list_provjson_in_proj",
        "list_runs_in_proj",
    ),
    "wrappers.functions": ("ProvenanceTrackedFunction",),
    "wrappers.models": ("ProvenanceTrackedModel", "WeightDistributionTrackedModel"),
    "wrappers.power_meter": ("PowerMeter",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name's module when the name is first used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
