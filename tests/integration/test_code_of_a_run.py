"""The commit of the code that ran, of which nobody told the run."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch import Trainer
from typer.testing import CliRunner

import prov4ml
from provml_lightning.cli.app import app
from tests.training import Digits, digits

AUTHOR = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


class Repository:
    """A repository of the user's, asked through git alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = folder / "train.py"
        self.script.write_text("import prov4ml\n")
        self.git("init", "--quiet", "--initial-branch=trunk")
        self.git("remote", "add", "origin", "https://bob:SECRET@example.org/ada/net.git")
        self.commit("first")

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.folder), *AUTHOR, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, message: str) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """The tests' own script is pytest's, an installed one: so the working directory counts."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    folder = tmp_path / "net"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Repository(folder)


def own_facts(run: Path) -> dict[str, Any]:
    """Return what a run's activity says."""
    told = json.loads((run / f"prov_{run.name}.json").read_text())["activity"]
    (own,) = (one for key, one in told.items() if key.startswith("run/"))
    return dict(own)


def git_facts(run: Path) -> dict[str, Any]:
    """Return what it says of its code."""
    told = own_facts(run)
    return {name: value for name, value in told.items() if name.startswith("provml:git_")}


def test_a_trainer_alone_leaves_the_commit_branch_and_link(
    repository: Repository, tmp_path: Path
) -> None:
    logger = prov4ml.ProvMLLogger("net", save_dir=tmp_path / "prov")
    trainer = Trainer(
        logger=logger, max_epochs=1, limit_train_batches=1, log_every_n_steps=1,
        enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False,
    )  # fmt: skip
    trainer.fit(Digits(), digits(), digits())
    run = Path(logger.log_dir or "")
    assert git_facts(run) == {
        "provml:git_commit": repository.git("rev-parse", "HEAD"),
        "provml:git_branch": "trunk",
        "provml:git_dirty": False,
        "provml:git_remote": "https://***@example.org/ada/net.git",
    }
    everything = b"".join(path.read_bytes() for path in run.rglob("*") if path.is_file())
    assert b"SECRET" not in everything


def test_changes_that_are_not_committed_are_told_and_shown(
    repository: Repository, tmp_path: Path
) -> None:
    repository.script.write_text("import prov4ml  # changed\n")
    with prov4ml.start_run("net", provenance_save_dir=tmp_path / "prov"):
        prov4ml.log_param("lr", 0.1)
    run = tmp_path / "prov" / "net_0"
    assert git_facts(run)["provml:git_dirty"] is True
    shown = CliRunner().invoke(app, ["show", str(run)], env={"COLUMNS": "200"}).stdout
    commit = repository.git("rev-parse", "HEAD")
    assert (
        f"{commit} (on trunk, with changes that are not committed,"
        " https://***@example.org/ada/net.git)"
    ) in " ".join(shown.split())


def test_the_folder_of_the_script_counts_and_not_the_one_that_it_is_started_in(
    repository: Repository, tmp_path: Path
) -> None:
    repository.script.write_text(
        "import sys, prov4ml\n"
        "with prov4ml.start_run('net', provenance_save_dir=sys.argv[1]):\n"
        "    prov4ml.log_param('lr', 0.1)\n"
    )
    commit = repository.commit("second")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    command = [sys.executable, str(repository.script), str(tmp_path / "prov")]
    subprocess.run(command, check=True, timeout=60, cwd=elsewhere)
    assert git_facts(tmp_path / "prov" / "net_0")["provml:git_commit"] == commit


def test_a_run_that_goes_on_after_another_commit_tells_both(
    repository: Repository, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"provenance_save_dir": tmp_path / "prov", "use_run_id": 7}
    with prov4ml.start_run("net", **options):
        prov4ml.log_param("lr", 0.1)
    first = repository.git("rev-parse", "HEAD")
    repository.script.write_text("import prov4ml  # better\n")
    second = repository.commit("second")
    with prov4ml.start_run("net", **options):
        prov4ml.log_param("lr", 0.2)
    told = git_facts(tmp_path / "prov" / "net_7")
    assert told["provml:git_commit"] == [first, second]
    assert told["provml:git_branch"] == "trunk"


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("why", ["no repository", "no commit", "no git"])
def test_where_there_is_no_commit_nothing_is_told(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why == "no git":
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        folder = tmp_path / "plain"
        folder.mkdir()
        monkeypatch.chdir(folder)
        if why == "no commit":
            subprocess.run(["git", "init", "--quiet"], check=True)  # noqa: S607
    with prov4ml.start_run("net", provenance_save_dir=tmp_path / "prov"):
        prov4ml.log_param("lr", 0.1)
    assert git_facts(tmp_path / "prov" / "net_0") == {}


def test_a_git_that_gives_no_answer_holds_up_nothing_and_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_answer = threading.Event()

    def head_late(_: Path) -> dict[str, str]:
        may_answer.wait()
        return {}

    monkeypatch.setattr("provml_lightning.runtime.surroundings.git_head", head_late)
    monkeypatch.setattr("provml_lightning.runtime.surroundings._PATIENCE", 0.1)
    with prov4ml.start_run("net", provenance_save_dir=tmp_path / "prov"):
        prov4ml.log_metric("loss", 0.5, "Training", 0)
    may_answer.set()
    (note,) = own_facts(tmp_path / "prov" / "net_0")["provml:note"]
    assert note == "git: git had not answered after 0.1 s, so what it says may be missing"


def test_processes_that_are_forked_while_git_is_asked_keep_nobody_waiting(
    repository: Repository, tmp_path: Path
) -> None:
    forking = multiprocessing.get_context("fork")
    may_end = forking.Event()
    for number in range(8):
        with prov4ml.start_run("net", provenance_save_dir=tmp_path / "prov", use_run_id=number):
            workers = [forking.Process(target=may_end.wait) for _ in range(4)]
            for worker in workers:
                worker.start()
                time.sleep(0.002)
        told = git_facts(tmp_path / "prov" / f"net_{number}")
        may_end.set()
        for worker in workers:
            worker.join()
        may_end.clear()
        assert told["provml:git_commit"] == repository.git("rev-parse", "HEAD")
        assert told["provml:git_dirty"] is False


@pytest.mark.filterwarnings("ignore:.*none left:provml_lightning.errors.RecordDroppedWarning")
def test_whatever_goes_wrong_with_git_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> dict[str, str]:
        raise MemoryError("none left")

    monkeypatch.setattr("provml_lightning.runtime.surroundings.git_head", fail)
    with prov4ml.start_run("net", provenance_save_dir=tmp_path / "prov"):
        prov4ml.log_metric("loss", 0.5, "Training", 0)
    (note,) = own_facts(tmp_path / "prov" / "net_0")["provml:note"]
    assert note == "git: git could not be asked: none left"
