from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).with_name("prov4ml")

TRAINING = """
import os, signal, sys
import prov4ml

prov4ml.start_run("digits", provenance_save_dir=sys.argv[1])
prov4ml.log_param("lr", 0.01)
for step in range(1000):
    prov4ml.log_metric("loss", 1000.0 - step, prov4ml.Context.TRAINING, step=step)
os.kill(os.getpid(), signal.SIGKILL)
"""


def _prov4ml(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")
    }
    return subprocess.run(
        [str(SCRIPT), *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        env=kept | variables,
    )


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The run of a process that was killed in the middle of its training."""
    process = subprocess.run([sys.executable, "-c", TRAINING, str(tmp_path)], check=False)
    assert process.returncode == -signal.SIGKILL
    return tmp_path / "digits_0"


@pytest.mark.parametrize(
    "command", [[str(SCRIPT)], [sys.executable, "-m", "provml_lightning"]], ids=["script", "module"]
)
def test_the_command_line_says_its_title_and_version(command: list[str], tmp_path: Path) -> None:
    said = subprocess.run(
        [*command, "--version"], check=True, capture_output=True, text=True, cwd=tmp_path
    ).stdout

    assert said == "provml-lightning 0.1.0\n"


def test_a_killed_run_is_seen_recovered_and_seen_whole(killed: Path) -> None:
    before = _prov4ml("show", killed)
    assert before.returncode == 0
    assert "incomplete" in before.stdout
    assert f"prov4ml recover {killed}" in before.stdout
    assert ["loss", "1", "000", "1000", "1", "1", "1000"] in map(
        str.split, before.stdout.splitlines()
    )

    assert "incomplete" in _prov4ml("runs", killed.parent).stdout

    recovered = _prov4ml("recover", killed)
    assert recovered.returncode == 0
    assert "1 000 values" in recovered.stdout
    assert _prov4ml("recover", "--all", killed.parent).stdout.startswith("nothing to recover")

    after = json.loads(_prov4ml("show", killed, "--json").stdout)
    assert (after["status"], after["settled"]) == ("incomplete", True)
    assert after["metrics"][0]["rows"] == 1000
    assert "metrics/Training.parquet" in {file["path"] for file in after["files"]}
    assert "journal/rank-00000.points" not in {file["path"] for file in after["files"]}
    assert "prov4ml recover" not in _prov4ml("show", killed).stdout


def test_a_pipe_gets_no_colours_and_whole_lines(killed: Path) -> None:
    piped = _prov4ml("show", killed)

    assert "\x1b" not in piped.stdout
    assert piped.stderr == ""


def test_colours_are_asked_for_and_refused(killed: Path) -> None:
    assert "\x1b[1;33mincomplete" in _prov4ml("runs", killed.parent, FORCE_COLOR="1").stdout
    refused = _prov4ml("runs", killed.parent, FORCE_COLOR="1", NO_COLOR="1").stdout
    assert "33m" not in refused


def test_a_reader_that_has_seen_enough_is_no_crash(killed: Path) -> None:
    process = subprocess.Popen(
        [str(SCRIPT), "show", str(killed)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, said = process.communicate()

    assert said == ""


def test_a_stream_without_the_letters_spells_them_out(killed: Path) -> None:
    run = killed.rename(killed.with_name("größe_0"))

    shown = _prov4ml("show", run, PYTHONIOENCODING="ascii")

    assert shown.returncode == 0
    assert r"gr\xf6\xdfe_0" in shown.stdout


def test_a_wrong_path_is_one_line_and_status_2(killed: Path) -> None:
    wrong = _prov4ml("show", killed.with_name("digts_0"))

    assert wrong.returncode == 2
    assert wrong.stdout == ""
    assert wrong.stderr.startswith("error: ")
    assert wrong.stderr.count("\n") == 1
