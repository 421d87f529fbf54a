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


def test_a_finished_run_is_shown_with_what_came_of_it(prov4ml: Command, finished: Path) -> None:
    shown = prov4ml("show", finished)

    assert shown.exit_code == 0
    lines = [line.split() for line in shown.output.splitlines()]
    assert ["digits_0"] in lines
    assert ["status", "completed"] in lines
    assert ["experiment", "digits,", "run", "0"] in lines
    assert ["lr", "0.1,", "0.01"] in lines
    assert ["loss", "3", "2", "1", "0.5", "2"] in lines
    assert "requirements.txt" in shown.output
    assert all(len(line) <= 80 for line in shown.output.splitlines())


def test_names_of_others_are_shown_and_never_obeyed(prov4ml: Command, finished: Path) -> None:
    shown = prov4ml("show", finished)

    assert r"[bold]x\x1b[31m\r\n:smile:" in shown.output
    assert "\x1b" not in shown.output


def test_json_holds_the_same_facts(prov4ml: Command, finished: Path) -> None:
    told = json.loads(prov4ml("show", finished, "--json").output)

    assert told["status"] == "completed"
    assert told["experiment"] == "digits"
    assert told["parameters"] == [
        {"name": "lr", "context": None, "source": None, "values": [0.1, 0.01]}
    ]
    loss, hostile = sorted(told["metrics"], key=lambda one: one["context"])
    assert (loss["name"], loss["rows"], loss["last"], loss["min"]) == ("loss", 3, 1.0, 0.5)
    assert hostile["name"] == "[bold]x\x1b[31m\r\n:smile:"
    assert (hostile["last"], hostile["min"]) == ("NaN", None)
    assert {"path": "run.json", "size": (finished / "run.json").stat().st_size} in told["files"]


def test_long_lists_are_cut_and_say_so(prov4ml: Command, tmp_path: Path) -> None:
    with library.start_run("wide", provenance_save_dir=tmp_path):
        for number in range(32):
            library.log_param(f"p{number}", number)

    cut = prov4ml("show", tmp_path / "wide_0").output
    whole = prov4ml("show", tmp_path / "wide_0", "--all").output

    assert "… and 12 more (--all)" in cut
    assert "p31" not in cut
    assert "p31" in whole
    assert "more (--all)" not in whole


def test_the_user_s_metrics_stand_before_those_that_were_measured(
    prov4ml: Command, tmp_path: Path
) -> None:
    with library.start_run("many", provenance_save_dir=tmp_path):
        for number in range(22):
            library.log_metric(f"a{number}", 1.0, "Training", step=0, source="procfs")
        library.log_metric("val_loss", 0.5, "Training", step=0)

    rows = [line.split() for line in prov4ml("show", tmp_path / "many_0").output.splitlines()]

    assert rows[rows.index(["Metrics", "of", "Training", "23"]) + 2][0] == "val_loss"


def test_what_a_library_tells_of_itself_does_not_hide_what_the_user_set(
    prov4ml: Command, tmp_path: Path
) -> None:
    with library.start_run("told", provenance_save_dir=tmp_path):
        for number in range(32):
            library.log_param(f"trainer/{number}", number, source="lightning")
        library.log_param("lr", 0.5)

    cut = prov4ml("show", tmp_path / "told_0").output
    whole = prov4ml("show", tmp_path / "told_0", "--all").output

    assert "Parameters  1\n" in cut
    assert "Settings of lightning  32\n" in cut
    assert "trainer/0" not in cut
    assert "trainer/31" in whole


def test_a_running_run_says_that_it_is(prov4ml: Command, tmp_path: Path) -> None:
    with library.start_run("now", provenance_save_dir=tmp_path):
        library.log_metric("loss", 0.25)
        shown = prov4ml("show", tmp_path / "now_0")

    assert "status      running: still being written" in shown.output
    assert ["loss", "1", "0.25", "0.25", "0.25", "0.25"] in map(
        str.split, shown.output.splitlines()
    )


def test_a_killed_run_says_what_to_do(prov4ml: Command, killed: Path) -> None:
    shown = " ".join(prov4ml("show", killed).output.split())

    assert "incomplete: its process died; all that was logged is below." in shown
    assert "prov4ml recover" in shown
    assert "loss 3 2 1 0.5 2" in shown


def test_a_failed_run_shows_its_error(prov4ml: Command, tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="bad"),
        library.start_run("f", provenance_save_dir=tmp_path),
    ):
        raise ValueError("bad [red]value")

    lines = [line.split() for line in prov4ml("show", tmp_path / "f_0").output.splitlines()]
    assert ["status", "failed"] in lines
    assert ["error", "ValueError:", "bad", "[red]value"] in lines


def test_a_wrong_path_ends_with_status_2_and_the_closest(prov4ml: Command, finished: Path) -> None:
    wrong = prov4ml("show", finished.with_name("digts_0"))

    assert wrong.exit_code == 2
    assert wrong.stderr.startswith("error: there is no ")
    assert "digits_0" in wrong.stderr
    assert wrong.stderr.count("\n") == 1


def test_a_project_is_no_run_and_its_runs_are_named(prov4ml: Command, project: Path) -> None:
    wrong = prov4ml("show", project)

    assert wrong.exit_code == 2
    assert str(project / "digits_0") in wrong.stderr


def test_something_that_is_no_prov_json_ends_with_status_1(
    prov4ml: Command, tmp_path: Path
) -> None:
    (tmp_path / "prov_x.json").write_text("[1, 2")

    wrong = prov4ml("show", tmp_path / "prov_x.json")

    assert wrong.exit_code == 1
    assert "is not JSON" in wrong.stderr
    assert "Traceback" not in wrong.output
