"""Documents of real runs: nested ones name each other, and a journal always says the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from provml_lightning.api.items import log_context, log_input, log_output
from provml_lightning.api.records import log_artifact, log_metric, log_param
from provml_lightning.api.runs import start_run
from tests.conformance.prov.checker import complaints
from tests.conformance.prov.reading import parse

if TYPE_CHECKING:
    from pathlib import Path

COMPILE = """
import sys
from pathlib import Path
from provml_lightning.provenance.provjson import dumps
from provml_lightning.provenance.statement import state
from provml_lightning.storage.contents import read_contents
from provml_lightning.storage.layout import RunLayout
sys.stdout.buffer.write(dumps(state(read_contents(RunLayout(Path(sys.argv[1]))))))
"""


@pytest.mark.parametrize("namespace", [None, "www.example.org"])
def test_a_nested_run_names_the_activity_that_its_parents_document_names(
    tmp_path: Path, namespace: str | None
) -> None:
    outer_name, inner_name = "sweep 1/a", "trial"
    with start_run(outer_name, namespace, tmp_path) as outer:
        log_param("trials", 2)
        with start_run(inner_name, None, tmp_path) as inner:
            log_metric("loss", 0.5, "Training")
    documents = {}
    for name, run in (("outer", outer), ("inner", inner)):
        (path,) = run.directory.glob("prov_*.json")
        documents[name] = parse(path.read_bytes())
        assert complaints(documents[name]) == []
    (activity,) = documents["outer"].get_record("run/sweep%201%2fa_0")
    informed = [
        [value.uri for _, value in record.formal_attributes]
        for record in documents["inner"].get_records()
        if record.get_type().localpart == "Communication"
    ]
    (own,) = documents["inner"].get_record("run/trial_0")
    assert [own.identifier.uri, activity.identifier.uri] in informed


def test_a_journal_is_the_same_document_in_every_process_and_place(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("lr: 0.1\n")
    with start_run("digits", None, tmp_path / "prov") as run:
        log_context("fold 1", is_subcontext_of="Training")
        for name in ("lr", "a/b", "é", ""):
            log_param(name, 0.1)
            log_param(name, 0.2, "fold 1")
            log_metric(name, 1.5, "fold 1", timestamp=86_400_000)
        log_artifact("config", file, is_input=True)
        log_input(3)
        log_output("done", context="Testing")
    (document,) = run.directory.glob("prov_*.json")
    content = document.read_bytes()
    assert complaints(parse(content)) == []
    moved = tmp_path / "elsewhere" / run.directory.name
    shutil.copytree(run.directory, moved)
    for seed, place in (("0", run.directory), ("1", moved), ("7", moved)):
        compiled = subprocess.run(
            [sys.executable, "-c", COMPILE, str(place)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": "America/St_Johns"},
            capture_output=True,
            check=True,
        )
        assert compiled.stdout == content
