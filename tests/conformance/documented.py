"""What the documents of yProv4ML and CarbonAI print of their calls, and where ours differ."""

from __future__ import annotations

import ast
import inspect
from typing import Any

__all__ = [
    "DEPARTURES",
    "DOCUMENTED",
    "METHODS",
    "REQUIRED",
    "TEXT",
    "more_of",
    "parameters_of",
]

REQUIRED = inspect.Parameter.empty

# As printed, one to a line, without the types.
TEXT = """
def start_run(experiment_name, prov_user_namespace=None, provenance_save_dir=None, \
collect_all_processes=False, save_after_n_logs=100, rank=None, metrics_file_type="csv", \
csv_separator=",", use_compressor=None, use_run_id=None): ...
def end_run(create_graph=False, create_svg=False, crate_ro_crate=False): ...
def log_param(key, value, context=None, source=None, is_input=False): ...
def log_artifact(artifact_name, artifact_path, context=None, step=None, \
log_copy_in_prov_directory=True, is_model=False, is_input=False): ...
def log_model(model_name, model, log_model_info=True, log_model_layers=False, is_input=False): ...
def save_model_version(model_name, model, context=None, step=None, incremental=True, \
is_input=False): ...
def log_dataset(dataset_label, dataset, log_dataset_info=True): ...
def ProvenanceTrackedFunction(func, context=None): ...
def ProvenanceTrackedModel(model_label, model, context=None, chunk_size=64): ...
def log_metric(key, value, context=None, step=0, source=None, timestamp=0): ...
def log_system_metrics(context, step=None): ...
def log_flops_per_epoch(label, model, dataset, context, step=None): ...
def log_flops_per_batch(label, model, batch, context, step=None): ...
def log_current_execution_time(label, context, step=None): ...
def log_execution_command(cmd, path): ...
def log_source_code(): ...
def list_activities(source): ...
def list_entities(source, entity_type=None): ...
def get_parameter(source, name, param, unwrap=True): ...
def list_parameters(data, name=None, unwrap=True): ...
def list_metrics(data, context=None, source=None): ...
def list_metric_paths(data, context=None, source=None, file_type=None): ...
def get_metric(data, name=None, context=None, source=None): ...
def list_runs_in_proj(path): ...
def list_provjson_in_proj(path): ...
def PowerMeter(project_name="", program_name="", client_name="", user_name="", \
cpu_power_log_path="", powerlog_save_path="", get_country=True, location="", is_online=True, \
filepath=None, output_format="csv", api_endpoint=None): ...

# Printed in examples alone, without a signature.
def log_carbon_metrics(context, step): ...
def log_input(value): ...
def log_output(value): ...
def ProvMLLogger(): ...
def ProvMLItwinAILogger(): ...
"""

# PowerMeter's methods, as the document of CarbonAI prints them; "…" stands behind step.
METHODS = {
    "__call__": ("package", "algorithm", "step"),
    "measure_power": ("package", "algorithm", "step"),
    "start_measure": ("package", "algorithm", "step"),
    "stop_measure": (),
    "from_config": ("path",),
}

_OWN = "left out, it is the run's own"
# What is ours and not the documents', and why. The package is prov4ml, as all their examples have
# it, for the distribution called yprov4ml is another one.
DEPARTURES: dict[tuple[str, str], tuple[Any, str]] = {
    ("start_run", "metrics_file_type"): ("parquet", "a tenth of the size, and typed"),
    ("log_system_metrics", "context"): (None, _OWN),
    ("log_carbon_metrics", "context"): (None, _OWN),
    ("log_carbon_metrics", "step"): (None, "as in log_system_metrics"),
    ("log_flops_per_epoch", "context"): (None, _OWN),
    ("log_flops_per_batch", "context"): (None, _OWN),
    ("log_current_execution_time", "context"): (None, _OWN),
    ("log_execution_command", "path"): (None, "the documents' own example leaves it out"),
}
# Parameters by position that no signature prints, and where they come from.
_MORE: dict[str, tuple[set[str], str]] = {
    "log_source_code": ({"path"}, "the text: 'if the path is not specified in the arguments'"),
    "log_input": ({"name", "context"}, "the first three of log_param, value first"),
    "log_output": ({"name", "context"}, "the first three of log_param, value first"),
    "ProvMLLogger": (
        {"name", "version", "save_dir", "prefix", "flush_logs_every_n_steps"},
        "those of Lightning's own loggers",
    ),
    "ProvMLItwinAILogger": (
        {"prov_user_namespace", "experiment_name", "provenance_save_dir", "save_after_n_logs"}
        | {"create_graph", "create_svg", "log_freq", "log_on_workers"},
        "those that yProv4ML 3.2 takes",
    ),
}


def _printed() -> dict[str, dict[str, Any]]:
    """Return each call's parameters in their order, each with its default."""
    calls = [node for node in ast.parse(TEXT).body if isinstance(node, ast.FunctionDef)]
    return {call.name: _defaults(call.args) for call in calls}


def _defaults(printed: ast.arguments) -> dict[str, Any]:
    names = [argument.arg for argument in printed.args]
    values = [ast.literal_eval(default) for default in printed.defaults]
    return dict(zip(names, [REQUIRED] * (len(names) - len(values)) + values, strict=True))


DOCUMENTED = _printed()


def parameters_of(call: Any) -> dict[str, inspect.Parameter]:
    """Return what a call, or a class's constructor, takes."""
    return dict(inspect.signature(call).parameters)


def more_of(name: str) -> set[str]:
    """Return what a call takes by position though no signature prints it."""
    return _MORE.get(name, (set(), ""))[0]
