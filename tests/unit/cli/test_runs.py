from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import prov4ml as library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    Command = Callable[..., Result]

PEER = {
    "prefix": {"yprov": "https://example.org/y", "provml": "prov-ml", "default": "exp_GR0_0"},
    "activity": {
        "exp_GR0_0": {
            "yprov:experiment_dir": "prov/exp_0",
            "prov:startedAtTime": "2026-11-30T04:23:19.500000",
            "prov:endedAtTime": "2026-11-30T04:23:26.250000",
        }
    },
    "entity": {
        "loss//TRAINING": {
            "prov:type": "provml:Metric",
            "prov:label": "loss",
            "yprov:context": "TRAINING",
            "dcterms:identifier": "prov/exp_0/metrics_GR0/loss_TRAINING_None_GR0.csv",
        }
    },
}


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """Two runs of ours, the second with the lower loss, and one of yProv4ML."""
    for value in (3.0, 2.0):
        with library.start_run("digits", provenance_save_dir=tmp_path):
            library.log_metric("loss", value, library.Context.TRAINING)
    files = tmp_path / "exp_0" / "metrics_GR0"
    files.mkdir(parents=True)
    (files.parent / "prov_exp_GR0_0.json").write_text(json.dumps(PEER))
    (files / "loss_TRAINING_None_GR0.csv").write_text("epoch,value,timestep\n0,9,1\n1,2.5,2\n")
    return tmp_path


def _names(output: str) -> list[str]:
    return [line.split()[0] for line in output.splitlines()[1:]]


def test_every_run_is_a_row_the_peers_too(prov4ml: Command, three: Path) -> None:
    listed = prov4ml("runs", three)

    assert listed.exit_code == 0
    assert _names(listed.output) == ["digits_0", "digits_1", "exp_0"]
    assert listed.output.splitlines()[3].split() == [
        "exp_0", "–", "2026-11-30", "04:23:19", "6.75", "s",
    ]  # fmt: skip


def test_metrics_are_shown_and_sorted_by(prov4ml: Command, three: Path) -> None:
    up = prov4ml("runs", three, "--metric", "loss", "--sort", "loss").output
    down = prov4ml("runs", three, "--sort", "loss", "--reverse").output

    assert _names(up) == ["digits_1", "exp_0", "digits_0"]
    assert [line.split()[-1] for line in up.splitlines()] == ["loss", "2", "2.5", "3"]
    assert _names(down) == ["digits_0", "exp_0", "digits_1"]


def test_a_metric_that_no_run_has_is_an_error_with_the_closest(
    prov4ml: Command, three: Path
) -> None:
    wrong = prov4ml("runs", three, "--metric", "los")

    assert wrong.exit_code == 2
    assert "'loss'" in wrong.stderr


def test_json_has_one_object_a_run(prov4ml: Command, three: Path) -> None:
    first, _, peer = json.loads(prov4ml("runs", three, "-m", "loss", "--json").output)

    assert (first["path"], first["status"]) == ("digits_0", "completed")
    assert first["metrics"] == [
        {"name": "loss", "context": "Training", "source": None, "last": 3.0}
    ]
    assert (peer["status"], peer["duration"]) == (None, 6.75)


def test_a_run_that_cannot_be_read_is_a_row_and_a_warning(prov4ml: Command, three: Path) -> None:
    (three / "digits_0" / "run.json").write_text("{")

    listed = prov4ml("runs", three)

    assert listed.exit_code == 0
    assert "unreadable" in listed.stdout
    assert listed.stderr.startswith("warning: digits_0: ")


def test_a_killed_run_is_incomplete(prov4ml: Command, killed: Path) -> None:
    assert "incomplete" in prov4ml("runs", killed.parent).output


def test_an_empty_folder_holds_no_runs(prov4ml: Command, tmp_path: Path) -> None:
    told = prov4ml("runs", tmp_path).output  # a long path breaks the line
    assert " ".join(told.split()).endswith("holds no runs")
    assert prov4ml("runs", tmp_path / "nowhere").exit_code == 2
