"""Inputs, outputs, contexts, code, commands, final metrics: what is told beside values."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import prov4ml
from provml_lightning.errors import ConfigurationError, RecordDroppedWarning, RecordError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, whose runs go to ``prov``."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "prov"


def document(run: Path) -> dict[str, Any]:
    """Return a run's PROV-JSON."""
    told: dict[str, Any] = json.loads((run / f"prov_{run.name}.json").read_text())
    return told


def of_type(run: Path, kind: str) -> list[dict[str, Any]]:
    """Return the entities of a type, in their order."""
    return [
        entity
        for entity in document(run)["entity"].values()
        if f'"{kind}"' in json.dumps(entity["prov:type"])
    ]


class TestFinalMetrics:
    @pytest.mark.parametrize(
        ("operation", "initial", "final"),
        [
            (prov4ml.FoldOperation.MAX, 0.0, 5.0),
            (prov4ml.FoldOperation.MAX, 9.0, 9.0),
            (prov4ml.FoldOperation.MIN, 9.0, -2.0),
            (prov4ml.FoldOperation.ADD, 10.0, 17.0),
            (prov4ml.FoldOperation.SUBTRACT, 10.0, 3.0),
            ("max", -math.inf, 5.0),
        ],
    )
    def test_the_values_of_every_context_are_folded_into_an_attribute_of_the_run(
        self, project: Path, operation: Any, initial: float, final: float
    ) -> None:
        with prov4ml.start_run("fold"):
            prov4ml.register_final_metric("score", initial, operation)
            for context, values in {"Training": (1.0, 5.0, -2.0), "Validation": (3.0,)}.items():
                for value in values:
                    prov4ml.log_metric("score", value, context)
            prov4ml.log_metric("other", 100.0)
        name = f"final_{str(operation).lower()}_score"
        assert prov4ml.get_parameter(project / "fold_0", "fold_0", name) == final

    def test_a_function_gets_the_values_in_the_order_of_their_times(self, project: Path) -> None:
        def later_counts_more(folded: float, value: float) -> float:
            return 10 * folded + value

        with prov4ml.start_run("fold"):
            prov4ml.register_final_metric("digit", 0, later_counts_more)
            for number, context in enumerate(("a", "b", "a"), start=1):
                prov4ml.log_metric("digit", number, context)
        attributes = document(project / "fold_0")["activity"]["run/fold_0"]
        (value,) = (v for name, v in attributes.items() if "later_counts_more" in name)
        assert value == {"$": "123.0", "type": "xsd:double"}

    def test_nan_is_no_largest_value(self, project: Path) -> None:
        with prov4ml.start_run("fold"):
            prov4ml.register_final_metric("score", 0, prov4ml.FoldOperation.MAX)
            for value in (1.0, math.nan, 2.0):
                prov4ml.log_metric("score", value)
        assert prov4ml.get_parameter(project / "fold_0", "fold_0", "final_max_score") == 2.0

    def test_a_killed_run_has_its_final_metrics_too(self, project: Path) -> None:
        script = (
            "import os, signal, prov4ml\n"
            "prov4ml.start_run('fold')\n"
            "prov4ml.register_final_metric('score', 0, 'add')\n"
            "for value in range(5): prov4ml.log_metric('score', value)\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        killed = subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
        assert killed.returncode == -signal.SIGKILL
        subprocess.run(
            [sys.executable, "-m", "provml_lightning", "recover", str(project / "fold_0")],
            check=True,
            timeout=60,
        )
        assert prov4ml.get_parameter(project / "fold_0", "fold_0", "final_add_score") == 10.0

    def test_a_function_that_fails_is_one_warning_and_a_note(self, project: Path) -> None:
        run = prov4ml.start_run("fold")
        prov4ml.register_final_metric("score", 0, lambda folded, value: folded / (value - 1))
        prov4ml.log_metric("score", 1.0)
        with pytest.warns(RecordDroppedWarning, match="ZeroDivisionError"):
            prov4ml.end_run()
        assert not run.is_open
        assert "ZeroDivisionError" in str(
            prov4ml.get_parameter(project / "fold_0", "fold_0", "note")
        )

    def test_an_operation_that_is_none_is_refused_with_the_choices(self, project: Path) -> None:
        with pytest.raises(ConfigurationError, match="'max', 'min', 'add', 'subtract'"):
            prov4ml.register_final_metric("score", 0, "median")
        assert not project.exists()


def test_every_input_and_output_is_an_entity_of_its_own_in_order(project: Path) -> None:
    with prov4ml.start_run("items"):
        for number in (1, 2, 2):
            prov4ml.log_input(number)
            prov4ml.log_output(number**2, "square", "Training")
    run = project / "items_0"
    assert [one["prov:value"] for one in of_type(run, "provml:Input")] == [1, 2, 2]
    assert [one["prov:value"] for one in of_type(run, "provml:Output")] == [1, 4, 4]
    used = [one["prov:entity"] for one in document(run)["used"].values()]
    assert [name for name in used if name.startswith("input/")] == [
        "input/~~/input",
        "input/~~/input~2",
        "input/~~/input~3",
    ]
    made = document(run)["wasGeneratedBy"].values()
    assert {one["prov:activity"] for one in made if "square" in one["prov:entity"]} == {
        "context/Training"
    }


def test_a_context_is_informed_by_the_one_that_it_is_a_part_of(project: Path) -> None:
    with prov4ml.start_run("contexts"):
        prov4ml.log_context("warm-up", "training", source_of_data="the archive")
        prov4ml.log_context("alone")
    told = document(project / "contexts_0")
    informed = {
        one["prov:informed"]: one["prov:informant"] for one in told["wasInformedBy"].values()
    }
    assert informed == {
        "context/Training": "run/contexts_0",
        "context/warm-up": "context/Training",
        "context/alone": "run/contexts_0",
    }
    assert told["activity"]["context/warm-up"]["yprov:source"] == "the archive"


def test_a_context_cannot_be_a_part_of_itself() -> None:
    with pytest.raises(RecordError, match="no part of itself"):
        prov4ml.log_context("Training", "training")


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        (("python3 main.py --epochs 3",), "python3 main.py --epochs 3"),
        (("python3", "my script.py"), "python3 'my script.py'"),
        (
            ("python3 main.py --api-token abc --epochs 3",),
            "python3 main.py --api-token '***' --epochs 3",
        ),
    ],
)
def test_the_command_is_kept_so_that_it_can_be_run_again(
    project: Path, told: tuple[str, ...], kept: str
) -> None:
    with prov4ml.start_run("command"):
        prov4ml.log_execution_command(*told)
    assert prov4ml.get_parameter(project / "command_0", "execution_command", "value") == kept


class TestSourceCode:
    def test_a_file_and_a_folder_are_copied(self, project: Path, tmp_path: Path) -> None:
        folder = tmp_path / "code"
        (folder / "parts").mkdir(parents=True)
        (folder / "main.py").write_text("print(1)\n")
        (folder / "parts" / "one.py").write_text("ONE = 1\n")
        with prov4ml.start_run("code"):
            prov4ml.log_source_code(folder / "main.py")
            prov4ml.log_source_code(folder)
        run = project / "code_0"
        first, second = (
            run / str(entity["dcterms:identifier"])
            for entity in of_type(run, "provml:SourceCode")
            if str(entity["dcterms:identifier"]).startswith("artifacts/")
        )
        assert first.read_text() == "print(1)\n"
        assert (second / "parts" / "one.py").read_text() == "ONE = 1\n"

    def test_a_repository_is_named_by_its_link_and_commit_and_what_changed(
        self, project: Path, tmp_path: Path
    ) -> None:
        def git(*arguments: str) -> str:
            identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
            command = ["git", "-C", str(tmp_path / "repository"), *identity, *arguments]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout

        (tmp_path / "repository").mkdir()
        git("init", "--quiet", "--initial-branch=main")
        git("remote", "add", "origin", "https://bob:SECRET@example.org/repository.git")
        script = tmp_path / "repository" / "main.py"
        script.write_text(
            "import sys, prov4ml\n"
            "with prov4ml.start_run('code', provenance_save_dir=sys.argv[1]):\n"
            "    prov4ml.log_source_code()\n"
        )
        git("add", ".")
        git("commit", "--quiet", "--message=first")
        script.write_text(script.read_text() + "# changed\n")
        subprocess.run([sys.executable, str(script), str(project)], check=True, timeout=60)

        run = project / "code_0"
        (code,) = of_type(run, "provml:SourceCode")
        assert code["provml:commit"] == git("rev-parse", "HEAD").strip()
        assert code["provml:remote"] == "https://***@example.org/repository.git"
        assert code["provml:branch"] == "main"
        assert code["provml:dirty"] is True
        assert "+# changed" in (run / code["dcterms:identifier"]).read_text()
        everything = b"".join(path.read_bytes() for path in run.rglob("*") if path.is_file())
        assert b"SECRET" not in everything

    def test_without_a_repository_a_link_cannot_be_asked_for(self, project: Path) -> None:
        script = (
            "import prov4ml\n"
            "with prov4ml.start_run('code'):\n"
            "    prov4ml.log_source_code(use_git=True)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**os.environ, "GIT_CEILING_DIRECTORIES": str(project.parent.parent)},
        )
        assert done.returncode == 1
        assert "is in no git repository with a remote; pass path=" in done.stderr


def test_the_source_of_a_metric_is_the_installed_library_that_logs_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed = tmp_path / "site-packages"
    (installed / "scorer").mkdir(parents=True)
    (installed / "scorer" / "__init__.py").write_text("")
    (installed / "scorer" / "deep.py").write_text(
        "import prov4ml\n\ndef score(): prov4ml.log_metric('accuracy', 0.5)\n"
    )
    monkeypatch.syspath_prepend(str(installed))
    from scorer.deep import score  # type: ignore[import-not-found]

    score()
    with prov4ml.start_run("source"):
        score()
        prov4ml.log_metric("own", 1.0)
        prov4ml.log_metric("told", 1.0, source="NVML")
    metrics = prov4ml.list_metrics(project / "source_0")
    found = {row.label: (row.source, row.rows) for row in metrics.itertuples()}
    assert found == {"accuracy": ("scorer", 2), "own": (None, 1), "told": ("NVML", 1)}


@pytest.mark.parametrize("spelling", ["crate_ro_crate", "create_rocrate"])
def test_both_spellings_of_the_crate_make_one(project: Path, spelling: str) -> None:
    prov4ml.start_run("crate")
    prov4ml.end_run(**{spelling: True})
    assert (project / "crate_0" / "ro-crate-metadata.json").is_file()
    assert (project / "crate_0.zip").is_file()


def test_a_picture_brings_its_graph(project: Path) -> None:
    prov4ml.start_run("graph")
    prov4ml.end_run(create_svg=True)
    assert (project / "graph_0" / "prov_graph_0.dot").is_file()
    assert "<svg" in (project / "graph_0" / "prov_graph_0.svg").read_text()


def test_a_run_that_is_ended_inside_its_block_stays_ended(project: Path) -> None:
    with prov4ml.start_run("block") as run:
        prov4ml.log_metric("loss", 1.0)
        prov4ml.end_run(create_graph=True)
        assert not run.is_open
    assert (project / "block_0" / "prov_block_0.dot").is_file()
    assert prov4ml.get_parameter(project / "block_0", "block_0", "status") == "completed"


def test_the_exception_of_a_block_is_the_runs_and_goes_on(project: Path) -> None:
    error = ValueError("no data")
    with pytest.raises(ValueError, match="no data") as raised, prov4ml.start_run("block"):
        raise error
    assert raised.value is error
    assert prov4ml.get_parameter(project / "block_0", "block_0", "status") == "failed"
    assert prov4ml.get_parameter(project / "block_0", "block_0", "error_type") == "ValueError"
