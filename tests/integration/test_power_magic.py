"""The magic in a real shell of IPython's, as a notebook's kernel has one."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("IPython")

SHELL = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell()
shell.history_manager.enabled = False
for cell in json.loads(sys.argv[1]):
    result = shell.run_cell(cell)
    error = result.error_before_exec or result.error_in_exec
    print("RESULT", json.dumps([result.success, error and f"{type(error).__name__}: {error}"]))
"""
BEGIN = """
%load_ext prov4ml.power_magic
from prov4ml import PowerMeter
power_meter = PowerMeter(project_name="MNIST classifier", is_online=False, location="FR")
"""


def run_cells(folder: Path, *cells: str) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", SHELL, json.dumps([BEGIN, *cells])],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "IPYTHONDIR": str(folder / "ipython")},
        timeout=100,
    )
    told = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    return [json.loads(line.removeprefix("RESULT ")) for line in told]


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "emissions.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_cell_is_measured_with_what_the_line_tells(tmp_path: Path) -> None:
    line = (
        '%%measure_power power_meter "package_name_used" "algorithm" --step "training"'
        ' --data_type "tabular" --data_shape "(3, 4)" --algorithm_params "n_estimators=300, d=15"'
        ' --comments "Classifier trained on the MNIST dataset, 3rd test"'
    )
    results = run_cells(tmp_path, f"{line}\nfound = sum(range(1000))", "assert found == 499500")
    assert results == [[True, None]] * 3
    (row,) = rows(tmp_path)
    assert row["Package"] == "package_name_used"
    assert row["Algorithm"] == "algorithm"
    assert row["Step"] == "training"
    assert row["Data type"] == "tabular"
    assert row["Data shape"] == "(3, 4)"
    assert row["Algorithm's parameters"] == "n_estimators=300, d=15"
    assert row["Comment"] == "Classifier trained on the MNIST dataset, 3rd test"
    assert row["Project name"] == "MNIST classifier"


def test_a_cell_that_raises_is_measured_and_stays_a_failed_cell(tmp_path: Path) -> None:
    cell = "%%measure_power power_meter pandas cleaning\nraise ValueError('mine')"
    assert run_cells(tmp_path, cell)[1] == [False, "ValueError: mine"]
    (row,) = rows(tmp_path)
    assert (row["Error"], row["Step"]) == ("ValueError", "other")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("nobody p a", "nobody is no PowerMeter here"),
        ("power_meter p", "the following arguments are required: algorithm"),
        ("power_meter p a --stage x", "unrecognized arguments: --stage x"),
        ("power_meter 'p a", "No closing quotation"),
    ],
)
def test_a_line_that_cannot_work_runs_nothing_and_ends_no_shell(
    tmp_path: Path, line: str, told: str
) -> None:
    _, refused, after = run_cells(
        tmp_path, f"%%measure_power {line}\nran = True", "assert 'ran' not in dir()"
    )
    assert not refused[0]
    assert told in refused[1]
    assert refused[1].startswith("ConfigurationError")
    assert after == [True, None]


def test_a_notebook_s_kernel_measures_its_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    cells = [
        BEGIN,
        "%%measure_power power_meter p block\nx = 3\nx + 1",
        "power_meter.start_measure('p', 'over two cells')",
        "power_meter.stop_measure()",
        "%%measure_power power_meter p awaiting\nimport asyncio\nawait asyncio.sleep(0)",
        "async with power_meter('p', 'async block'):\n    x = 5",
        "%%measure_power power_meter p failing\nraise ValueError('mine')",
    ]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "", "language": "python"}},
    )
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, allow_errors=True, resources=resources).execute()

    outputs = [cell.outputs for cell in notebook.cells]
    assert outputs[1][0]["data"]["text/plain"] == "4"
    assert outputs[2][0]["data"]["text/plain"] == "<Measure of p: over two cells>"
    assert "async with power_meter" in outputs[4][0]["evalue"]
    assert outputs[6][-1]["ename"] == "ValueError"
    measured = [row["Algorithm"] for row in rows(tmp_path)]
    assert measured == ["block", "over two cells", "async block", "failing"]


def test_ipython_is_not_loaded_for_it() -> None:
    program = "import sys, prov4ml.power_magic; sys.exit('IPython' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)
