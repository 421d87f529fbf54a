"""The API that the documents of yProv4ML show: names, parameters, their order and defaults."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import prov4ml
import provml_lightning
from tests.conformance.documented import (
    DEPARTURES,
    DOCUMENTED,
    METHODS,
    REQUIRED,
    more_of,
    parameters_of,
)

SCRIPTS = Path(__file__).parents[1] / "e2e" / "documents"
ROWS = [(call, name) for call, parameters in DOCUMENTED.items() for name in parameters]
MEMBERS = {
    "Context": {
        "TRAINING": "Training",
        "VALIDATION": "Validation",
        "TESTING": "Testing",
        "DATASETS": "Datasets",
        "MODELS": "Models",
    },
    "MetricsType": {"PARQUET": "parquet", "CSV": "csv", "ZARR": "zarr", "NETCDF": "netcdf"},
    "CompressorType": {
        "NONE": "none",
        "ZIP": "zip",
        "ZSTD": "zstd",
        "BLOSC_ZSTD": "blosc_zstd",
        "LZ4": "lz4",
    },
    "FoldOperation": {"MAX": "max", "MIN": "min", "ADD": "add", "SUBTRACT": "subtract"},
}
COMMANDS = {
    "prov2dot": ("--prov_json", "--output"),
    "dot2svg": ("--dot", "--output"),
    "prov_collection": ("--experiment_path", "--output_dir"),
}


def printed_calls() -> list[Any]:
    """Return every call on prov4ml that the documents' scripts print, one row for each."""
    return [
        pytest.param(node.func.attr, node, id=f"{script.stem}-{node.func.attr}-{node.lineno}")
        for script in sorted(SCRIPTS.glob("*.py"))
        for node in ast.walk(ast.parse(script.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value) == "prov4ml"
    ]


@pytest.mark.parametrize(("call", "name"), ROWS)
def test_a_documented_parameter_stands_in_its_place_with_its_default(call: str, name: str) -> None:
    ours = parameters_of(getattr(prov4ml, call))
    assert list(ours).index(name) == list(DOCUMENTED[call]).index(name)
    assert ours[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    expected, _ = DEPARTURES.get((call, name), (DOCUMENTED[call][name], ""))
    assert ours[name].default == expected


@pytest.mark.parametrize("call", DOCUMENTED)
def test_whatever_else_a_call_takes_is_a_keyword_with_a_default(call: str) -> None:
    ours = parameters_of(getattr(prov4ml, call))
    more = [parameter for name, parameter in ours.items() if name not in DOCUMENTED[call]]
    by_position = {
        parameter.name for parameter in more if parameter.kind is not inspect.Parameter.KEYWORD_ONLY
    }
    assert by_position == more_of(call)
    assert all(parameter.default is not REQUIRED for parameter in more)


@pytest.mark.parametrize("method", METHODS)
def test_a_documented_method_takes_what_is_printed_first(method: str) -> None:
    ours = list(parameters_of(getattr(prov4ml.PowerMeter, method)))
    names = [name for name in ours if name != "self"]
    assert tuple(names[: len(METHODS[method])]) == METHODS[method]


@pytest.mark.parametrize(("call", "printed"), printed_calls())
def test_a_call_of_the_documents_scripts_is_taken(call: str, printed: ast.Call) -> None:
    values = {keyword.arg or "": keyword.value for keyword in printed.keywords}
    inspect.signature(getattr(prov4ml, call)).bind(*printed.args, **values)


@pytest.mark.parametrize(("call", "name"), DEPARTURES)
def test_a_departure_differs_from_the_documents_and_has_a_reason(call: str, name: str) -> None:
    ours, reason = DEPARTURES[call, name]
    assert ours != DOCUMENTED[call][name]
    assert reason


@pytest.mark.parametrize("name", [*DOCUMENTED, *MEMBERS])
def test_both_packages_name_one_and_the_same_thing(name: str) -> None:
    assert getattr(prov4ml, name) is getattr(provml_lightning, name)
    assert name in dir(prov4ml)


@pytest.mark.parametrize("name", MEMBERS)
def test_a_documented_choice_is_a_text(name: str) -> None:
    choice: Any = getattr(prov4ml, name)
    assert {member.name: member.value for member in choice} == MEMBERS[name]
    assert issubclass(choice, str)


@pytest.mark.parametrize("module", COMMANDS)
def test_a_documented_command_has_its_options(module: str) -> None:
    said = subprocess.run(
        [sys.executable, "-m", f"prov4ml.{module}", "--help"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
    ).stdout
    assert [option for option in COMMANDS[module] if option not in said] == []
