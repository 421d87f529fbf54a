from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from provml_lightning.domain.settings import RunSettings
from provml_lightning.runtime.opening import open_run

SCRIPT = str(Path(sys.executable).with_name("prov4ml"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with one run, ``prov/digits_0``."""
    run = open_run(RunSettings(experiment_name="digits", provenance_save_dir=tmp_path / "prov"))
    run.record_metric("loss", 0.5, "Training", 0)
    run.close()
    return tmp_path


def call(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def module(folder: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return call(folder, sys.executable, "-m", f"prov4ml.{name}", *arguments)


def test_the_documented_commands_draw_a_document(project: Path) -> None:
    document = "prov/digits_0/prov_digits_0.json"

    first = module(project, "prov2dot", "--prov_json", document, "--output", "prov_graph.dot")
    second = module(project, "dot2svg", "--dot", "prov_graph.dot", "--output", "prov_graph.svg")

    assert (first.returncode, first.stdout) == (0, "prov_graph.dot\n")
    assert (second.returncode, second.stdout) == (0, "prov_graph.svg\n")
    assert (project / "prov_graph.dot").read_text().startswith("digraph")
    assert "</svg>" in (project / "prov_graph.svg").read_text()


def test_without_an_output_the_file_lies_beside_the_input(project: Path) -> None:
    document = "prov/digits_0/prov_digits_0.json"

    assert module(project, "prov2dot", "--prov_json", document).returncode == 0
    assert module(project, "dot2svg", "--dot", document.replace("json", "dot")).returncode == 0

    assert (project / "prov/digits_0/prov_digits_0.dot").exists()
    assert (project / "prov/digits_0/prov_digits_0.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["prov2dot", "--prov_json", "none.json"], 1, "error: none.json cannot be read"),
        (["dot2svg", "--dot", "none.dot"], 1, "error: none.dot was not drawn"),
        (["prov2dot"], 2, "--prov_json"),
    ],
    ids=["no document", "no dot", "no option"],
)
def test_what_cannot_be_done_is_one_line_and_a_status(
    arguments: list[str], status: int, said: str, tmp_path: Path
) -> None:
    done = module(tmp_path, *arguments)

    assert done.returncode == status
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_graph_draws_a_run_into_its_folder(project: Path) -> None:
    done = call(project, SCRIPT, "graph", "prov/digits_0", "--svg")

    assert done.stdout.splitlines() == [
        "prov/digits_0/prov_digits_0.dot",
        "prov/digits_0/prov_digits_0.svg",
    ]
    assert all((project / line).exists() for line in done.stdout.splitlines())


def test_graph_never_writes_the_picture_over_the_dot(project: Path) -> None:
    done = call(project, SCRIPT, "graph", "prov/digits_0", "--svg", "--output", "g.dot")

    assert done.stdout.splitlines() == ["g.dot", "g.svg"]
    assert (project / "g.dot").read_text().startswith("digraph")


def test_crate_packs_a_run_with_its_license(project: Path) -> None:
    done = call(project, SCRIPT, "crate", "prov/digits_0", "--zip", "--license", "CC-BY-4.0")

    assert done.stdout == f"{project / 'prov' / 'digits_0.zip'}\n"
    metadata = json.loads((project / "prov/digits_0/ro-crate-metadata.json").read_text())
    (root,) = (entity for entity in metadata["@graph"] if entity["@id"] == "./")
    assert root["license"] == {"@id": "https://spdx.org/licenses/CC-BY-4.0"}


@pytest.mark.parametrize("command", ["crate", "graph"])
def test_what_is_no_run_is_refused_with_the_ones_that_are_close(
    command: str, project: Path
) -> None:
    none = call(project, SCRIPT, command, "prov/digit_0")
    assert (none.returncode, none.stdout) == (2, "")
    assert "there is no 'prov/digit_0'; the closest are" in none.stderr

    above = call(project, SCRIPT, command, "prov")
    assert (above.returncode, above.stdout) == (2, "")
    assert "runs lie below it, such as 'prov/digits_0'" in above.stderr


def test_a_crate_of_a_file_is_refused(project: Path) -> None:
    done = call(project, SCRIPT, "crate", "prov/digits_0/prov_digits_0.json")

    assert done.returncode == 1
    assert "is a file, not the folder of a run" in done.stderr
