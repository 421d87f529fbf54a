"""Each example as a user runs it, in an empty folder; then what it left is asked."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import prov4ml

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder."""
    empty = tmp_path / "empty"
    empty.mkdir()
    return empty


def run_example(script: Path, folder: Path) -> str:
    """Run a script in a folder; return what it printed."""
    done = subprocess.run(
        [sys.executable, str(script)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def record_named_in(said: str, folder: Path) -> Path:
    """Return the folder that the last line of an example's output names."""
    label, _, place = said.rstrip().splitlines()[-1].partition(": ")
    assert label == "The record"
    return folder / place


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def document_of(run: Path) -> dict[str, Any]:
    (path,) = run.glob("prov_*.json")
    document: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return document


def versions_of(run: Path) -> list[tuple[str, str]]:
    """Return the chain of model versions, each with the one before."""
    derived = document_of(run)["wasDerivedFrom"].values()
    links = ((link["prov:generatedEntity"], link["prov:usedEntity"]) for link in derived)
    return sorted(link for link in links if all(end.startswith("version/") for end in link))


def rows_of(run: Path) -> dict[tuple[str, str], int]:
    """Return the rows of each metric that the example logged."""
    metrics = prov4ml.list_metrics(run)
    metrics = metrics[metrics["source"] != "lightning"]
    return {(row.label, row.context): row.rows for row in metrics.itertuples()}


def test_the_pytorch_loop_leaves_what_its_calls_said(folder: Path) -> None:
    run = record_named_in(run_example(EXAMPLES / "pytorch_loop.py", folder), folder)

    assert left_in(folder) == {"prov"}
    assert left_in(folder / "prov") == {"pytorch_loop_0", "pytorch_loop_0.zip"}
    assert run == folder / "prov" / "pytorch_loop_0"
    # 1797 digits: 1500 in 47 batches of 32 and 297 in 10, three epochs.
    assert rows_of(run) == {("Loss", "Training"): 141, ("Loss", "Validation"): 30}
    steps = prov4ml.get_metric(run, "Loss", "Validation")["step"].tolist()
    assert steps == [0] * 10 + [1] * 10 + [2] * 10
    loss = prov4ml.get_metric(run, "Loss", "Training")["value"]
    assert loss[:47].mean() > loss[94:].mean()
    assert prov4ml.get_parameter(run, "dataset transformation", "value") == "Scale(by=0.0625)"
    assert prov4ml.get_parameter(run, "loss_fn", "value") == "cross_entropy"
    for label, samples, batches in (("train_dataset", 1500, 47), ("val_dataset", 297, 10)):
        assert prov4ml.get_parameter(run, label, "total_samples") == samples
        assert prov4ml.get_parameter(run, label, "total_batches") == batches
    assert prov4ml.get_parameter(run, "digits_final", "total_params") == 64 * 10 + 10
    assert versions_of(run) == [
        ("version/Training/digits/1", "version/Training/digits/0"),
        ("version/Training/digits/2", "version/Training/digits/1"),
    ]
    assert {path.suffix for path in run.glob("prov_*")} == {".json", ".dot", ".svg"}
    assert (run / "ro-crate-metadata.json").is_file()


def test_the_one_line_of_lightning_leaves_the_whole_training(folder: Path) -> None:
    said = run_example(EXAMPLES / "lightning_digits.py", folder)

    assert left_in(folder) == {"prov"}
    run = Path(said.rstrip().rpartition("prov4ml show ")[2])
    assert run == folder / "prov" / "digits" / "version_0"
    # 1258 of 1797 digits in 40 batches of 32; every fifth is logged, five epochs.
    logged = {"Training": ("train", 40), "Validation": ("val", 5), "Testing": ("test", 1)}
    assert rows_of(run) == {
        (f"{stage}_{what}", context): rows
        for context, (stage, rows) in logged.items()
        for what in ("loss", "accuracy")
    }
    assert prov4ml.get_parameter(run, "hidden", "value") == 64
    accuracy = prov4ml.get_metric(run, "test_accuracy")["value"][0]
    assert accuracy > 0.9
    assert re.search(rf"test_accuracy +Testing +1 +{accuracy:.6f}", said)
    assert {path.suffix for path in run.glob("checkpoints/*")} == {".ckpt"}


def test_calls_inside_a_lightning_module_go_to_the_run_of_the_logger(folder: Path) -> None:
    run = record_named_in(run_example(EXAMPLES / "lightning_calls.py", folder), folder)

    assert left_in(folder) == {"prov"}
    assert run == folder / "prov" / "lightning_calls" / "version_0"
    # 1500 digits in 24 batches of 64, two epochs.
    assert rows_of(run) == {
        ("loss", "Training"): 48,
        ("train_epoch_time", "Training"): 2,
        ("val_loss", "Validation"): 2,
    }
    assert prov4ml.get_metric(run, "loss")["step"].tolist() == [0] * 24 + [1] * 24
    first, second = prov4ml.get_metric(run, "train_epoch_time")["value"]
    assert 0 < first < second
    assert prov4ml.get_parameter(run, "val_dataset", "total_samples") == 297
    assert versions_of(run) == [("version/Training/digits/1", "version/Training/digits/0")]
    assert prov4ml.get_parameter(run, "digits_final", "total_params") == 650
    assert prov4ml.get_parameter(run, "lightning_calls_0", "status") == "completed"


def test_runs_are_compared_and_drawn(folder: Path) -> None:
    with prov4ml.start_run("another", provenance_save_dir=folder / "prov"):
        prov4ml.log_metric("loss", 1.0)  # what lies beside its runs is not among them
    said = run_example(EXAMPLES / "view_and_plot.py", folder)

    assert left_in(folder) == {"prov", "accuracy.png"}
    assert record_named_in(said, folder) == folder / "prov" / "step_size"
    runs = prov4ml.list_runs_in_proj(folder / "prov" / "step_size")
    assert [run.name for run in runs] == ["digits_0", "digits_1", "digits_2"]
    for run, step_size in zip(runs, ("1e-05", "0.0001", "0.001"), strict=True):
        assert f"prov/step_size/{run.name}: step size {step_size}\n" in said
        assert rows_of(run) == {("accuracy", "Training"): 20, ("accuracy", "Validation"): 20}
        curve = prov4ml.get_metric(run, "accuracy", "Validation")
        assert curve["step"].tolist() == list(range(20))
        assert f"{curve['value'].iloc[-1]:.6f} {curve['value'].max():.6f}" in said
        # So many of 297 digits are told right.
        assert ((curve["value"] * 297).round(6) % 1 == 0).all()
    from PIL import Image

    with Image.open(folder / "accuracy.png") as picture:
        assert picture.size == (960, 720)
        assert len(picture.convert("RGB").getcolors(960 * 720) or ()) > 10


def test_a_run_is_repeated_from_its_record_alone(folder: Path) -> None:
    elsewhere = folder.parent / "code"  # no repository: the code itself is kept
    elsewhere.mkdir()
    shutil.copy(EXAMPLES / "reproducible.py", elsewhere)
    run = record_named_in(run_example(elsewhere / "reproducible.py", folder), folder)
    assert left_in(folder) == {"prov"}

    again = folder.parent / "again"
    code = run / prov4ml.get_parameter(run, "source_code", "dcterms:identifier")
    shutil.copytree(code, again)
    command = shlex.split(prov4ml.get_parameter(run, "execution_command", "value"))
    assert command == ["python", "reproducible.py"]
    subprocess.run([sys.executable, *command[1:]], cwd=again, capture_output=True, check=True)
    (repeated,) = prov4ml.list_runs_in_proj(again / "prov")

    assert values_of(run, "Input") == list(range(10))
    assert len(values_of(run, "Output")) == 10
    assert values_of(run, "Output") == values_of(repeated, "Output")
    assert (run / "prov_reproducible_0.svg").is_file()


def test_the_notebook_shows_the_graph_a_plot_and_a_table(folder: Path) -> None:
    kept = json.loads((EXAMPLES / "visualise.ipynb").read_text("utf-8"))
    code = [cell for cell in kept["cells"] if cell["cell_type"] == "code"]
    assert [(cell["outputs"], cell["execution_count"]) for cell in code] == [([], None)] * len(code)

    shutil.copy(EXAMPLES / "visualise.ipynb", folder)
    jupyter = Path(sys.executable).with_name("jupyter-execute")
    subprocess.run(
        [str(jupyter), "--output=shown.ipynb", "visualise.ipynb"],
        cwd=folder,
        capture_output=True,
        check=True,
    )

    assert left_in(folder) == {"prov", "visualise.ipynb", "shown.ipynb"}
    shown = json.loads((folder / "shown.ipynb").read_text("utf-8"))
    outputs = [output for cell in shown["cells"] for output in cell.get("outputs", ())]
    graph, plot, table, said = outputs
    run = record_named_in("".join(said["text"]), folder)
    drawn = (run / "prov_notebook_0.svg").read_text("utf-8")
    assert "</svg>" in drawn
    assert "accuracy" in "".join(graph["data"]["image/svg+xml"])
    assert plot["data"]["image/png"].startswith("iVBORw0KGgo")
    assert "<table" in "".join(table["data"]["text/html"])
    assert rows_of(run) == {("accuracy", "Training"): 20, ("accuracy", "Validation"): 20}


def values_of(run: Path, kind: str) -> list[Any]:
    """Return the values of all inputs or outputs, in the order in which they were logged."""
    entities = document_of(run)["entity"].values()
    values = [
        (entity["provml:order"], entity["prov:value"])
        for entity in entities
        if f"provml:{kind}" in str(entity["prov:type"])
    ]
    return [plain(value) for _, value in sorted(values, key=lambda pair: pair[0])]


def plain(value: Any) -> Any:
    return float(value["$"]) if isinstance(value, dict) else value


def test_the_logger_of_itwinai_records_a_lightning_training(folder: Path) -> None:
    run = record_named_in(run_example(EXAMPLES / "itwinai_digits.py", folder), folder)

    assert left_in(folder) == {"mllogs"}
    assert run == folder / "mllogs" / "prov_logs" / "itwinai_digits" / "version_0"
    # 1500 digits in 24 batches of 64, three epochs.
    assert rows_of(run) == {("train_loss", "Training"): 72, ("validation_loss", "Validation"): 3}
    assert prov4ml.get_parameter(run, "epochs", "value") == 3
    assert prov4ml.get_parameter(run, "digits", "total_params") == 650
    assert (run / "artifacts" / "note.txt").read_text() == "handwritten digits, 8 x 8 pixels"
    assert prov4ml.list_parameters(run)["provml:status"] == "completed"
    assert {path.suffix for path in run.glob("prov_*")} == {".json", ".dot"}
