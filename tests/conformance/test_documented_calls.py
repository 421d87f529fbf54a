"""The calls that the documents of yProv4ML show: names, parameters, their order and defaults."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import prov4ml
import provml_lightning

REQUIRED = inspect.Parameter.empty

# As the documents write them, in their order. "csv" is the one default that is not ours, below.
DOCUMENTED: dict[str, dict[str, Any]] = {
    "start_run": {
        "experiment_name": REQUIRED,
        "prov_user_namespace": None,
        "provenance_save_dir": None,
        "collect_all_processes": False,
        "save_after_n_logs": 100,
        "rank": None,
        "metrics_file_type": "csv",
        "csv_separator": ",",
        "use_compressor": None,
        "use_run_id": None,
    },
    "end_run": {"create_graph": False, "create_svg": False, "crate_ro_crate": False},
    "log_param": {
        "key": REQUIRED,
        "value": REQUIRED,
        "context": None,
        "source": None,
        "is_input": False,
    },
    "log_artifact": {
        "artifact_name": REQUIRED,
        "artifact_path": REQUIRED,
        "context": None,
        "step": None,
        "log_copy_in_prov_directory": True,
        "is_model": False,
        "is_input": False,
    },
    "log_model": {
        "model_name": REQUIRED,
        "model": REQUIRED,
        "log_model_info": True,
        "log_model_layers": False,
        "is_input": False,
    },
    "save_model_version": {
        "model_name": REQUIRED,
        "model": REQUIRED,
        "context": None,
        "step": None,
        "incremental": True,
        "is_input": False,
    },
    "log_dataset": {"dataset_label": REQUIRED, "dataset": REQUIRED, "log_dataset_info": True},
    "log_metric": {
        "key": REQUIRED,
        "value": REQUIRED,
        "context": None,
        "step": 0,
        "source": None,
        "timestamp": 0,
    },
    "log_current_execution_time": {"label": REQUIRED, "context": REQUIRED, "step": None},
}

# What is ours and not the documents', and why.
DEPARTURES = {
    ("start_run", "metrics_file_type"): ("parquet", "a tenth of the size, and typed"),
    ("log_current_execution_time", "context"): (None, "left out it is the run's own"),
}
# Keywords that the documents' examples pass and their signatures do not name.
EXAMPLES = {
    "start_run": ("disable_codecarbon", "unify_experiments"),
    "end_run": ("create_rocrate",),
}
ROWS = [(call, name) for call, parameters in DOCUMENTED.items() for name in parameters]


def parameters(call: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(getattr(prov4ml, call)).parameters)


@pytest.mark.parametrize(("call", "name"), ROWS)
def test_a_documented_parameter_stands_in_its_place_with_its_default(call: str, name: str) -> None:
    documented = list(DOCUMENTED[call])
    ours = parameters(call)
    assert list(ours).index(name) == documented.index(name)
    assert ours[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    expected, _ = DEPARTURES.get((call, name), (DOCUMENTED[call][name], ""))
    assert ours[name].default == expected


@pytest.mark.parametrize("call", DOCUMENTED)
def test_whatever_else_a_call_takes_is_a_keyword_with_a_default(call: str) -> None:
    more = [p for name, p in parameters(call).items() if name not in DOCUMENTED[call]]
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in more)
    assert all(p.default is not REQUIRED for p in more)


@pytest.mark.parametrize(("call", "names"), EXAMPLES.items())
def test_a_call_takes_the_keywords_of_the_documents_examples(
    call: str, names: tuple[str, ...]
) -> None:
    assert set(names) <= parameters(call).keys()


@pytest.mark.parametrize(("call", "name"), DEPARTURES)
def test_a_departure_differs_from_the_documents(call: str, name: str) -> None:
    assert DEPARTURES[call, name][0] != DOCUMENTED[call][name]


@pytest.mark.parametrize("call", [*DOCUMENTED, "Context", "MetricsType", "ProvMLLogger"])
def test_both_packages_name_one_and_the_same_thing(call: str) -> None:
    assert getattr(prov4ml, call) is getattr(provml_lightning, call)
    assert call in dir(prov4ml)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("TRAINING", "Training"),
        ("VALIDATION", "Validation"),
        ("TESTING", "Testing"),
        ("DATASETS", "Datasets"),
        ("MODELS", "Models"),
    ],
)
def test_a_context_is_a_text_and_is_called_as_the_documents_call_it(
    member: str, value: str
) -> None:
    assert prov4ml.Context[member] == value
    assert isinstance(prov4ml.Context[member], str)
