"""The reviewed list of public names: whoever adds one changes it here too."""

from __future__ import annotations

from pathlib import Path

import prov4ml
import provml_lightning

NAMES = [
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
# Run with python -m prov4ml.NAME.
COMMANDS = {"dot2svg", "prov2dot", "prov_collection"}
# Loaded in a notebook with %load_ext prov4ml.NAME.
EXTENSIONS = {"power_magic"}


def test_the_public_names_are_those_of_the_reviewed_list() -> None:
    assert sorted(provml_lightning.__all__) == sorted(NAMES)
    assert sorted(prov4ml.__all__) == sorted(NAMES)


def test_every_public_name_leads_somewhere_and_is_documented() -> None:
    assert provml_lightning.__version__
    for name in set(NAMES) - {"__version__"}:
        assert getattr(provml_lightning, name).__doc__, name


def test_the_commands_are_those_of_the_reviewed_list() -> None:
    files = Path(prov4ml.__file__).parent.glob("[!_]*.py")
    assert {path.stem for path in files} == COMMANDS | EXTENSIONS
