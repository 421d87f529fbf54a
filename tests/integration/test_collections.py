"""Several runs as one document."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import prov.model
import pytest

import prov4ml

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Three runs of one experiment that differ in one parameter and one metric."""
    project = tmp_path / "prov"
    for number in range(3):
        with prov4ml.start_run("digits", "www.example.org", project):
            prov4ml.log_param("lr", number / 10)
            prov4ml.log_metric("loss", 1.0 / (number + 1), "Training", 5)
    return project


def records(document: prov.model.ProvBundle) -> int:
    return len(document.get_records())


def collection(project: Path, output: Path, *options: str) -> Path:
    command = [sys.executable, "-W", "error", "-m", "prov4ml.prov_collection"]
    named = ["--experiment_path", str(project), "--output_dir", str(output)]
    subprocess.run([*command, *named, *options], check=True, timeout=60)
    return output / "collection.json"


def test_bundles_hold_every_record_of_every_document(project: Path, tmp_path: Path) -> None:
    whole = prov.model.ProvDocument.deserialize(collection(project, tmp_path / "out"))
    own = [
        records(prov.model.ProvDocument.deserialize(path))
        for path in prov4ml.list_provjson_in_proj(project)
    ]
    assert [records(bundle) for bundle in whole.bundles] == own
    assert len(list(whole.get_records(prov.model.ProvEntity))) == 3


def test_merged_records_keep_distinct_ids(project: Path, tmp_path: Path) -> None:
    path = collection(project, tmp_path / "out", "--merged")
    whole = prov.model.ProvDocument.deserialize(path)
    own = [
        records(prov.model.ProvDocument.deserialize(one))
        for one in prov4ml.list_provjson_in_proj(project)
    ]
    assert records(whole) == sum(own)
    merged: dict[str, Any] = json.loads(path.read_text())
    runs = [name for name in merged["activity"] if ":run/" in name]
    assert runs == ["r1:run/digits_0", "r2:run/digits_1", "r3:run/digits_2"]


@pytest.mark.parametrize("options", [(), ("--merged",)])
def test_a_collection_answers_for_each_of_its_runs(
    project: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = collection(project, tmp_path / "elsewhere", *options)
    assert prov4ml.list_metrics(path)["last"].tolist() == [1.0, 1 / 2, 1 / 3]
    assert prov4ml.list_parameters(path)["lr"] == [0.0, 0.1, 0.2]


def test_a_collection_above_its_runs_moves_with_them(project: Path, tmp_path: Path) -> None:
    collection(project, project, "--merged")
    moved = project.rename(tmp_path / "moved")
    loss = prov4ml.get_metric(moved / "collection.json", "r3:metric/Training/loss")
    assert loss["value"].tolist() == [1 / 3]


def test_a_killed_run_without_a_document_is_in_the_collection(
    project: Path, tmp_path: Path
) -> None:
    dies = (
        "import os, prov4ml\n"
        f"prov4ml.start_run('digits', provenance_save_dir={str(project)!r})\n"
        "prov4ml.log_param('lr', 0.3)\n"
        "os._exit(1)\n"
    )
    subprocess.run([sys.executable, "-c", dies], check=False, timeout=60)
    assert not list((project / "digits_3").glob("prov_*.json"))

    path = collection(project, tmp_path / "out")
    assert prov4ml.list_parameters(path)["lr"] == [0.0, 0.1, 0.2, 0.3]


def test_unified_experiments_are_one_document_beside_the_runs(tmp_path: Path) -> None:
    for name in ("digits", "digits", "other"):
        with prov4ml.start_run(name, provenance_save_dir=tmp_path, unify_experiments=True):
            prov4ml.log_param("name", name)
    whole = prov.model.ProvDocument.deserialize(tmp_path / "collection_digits.json")
    assert len(list(whole.bundles)) == 2
    assert len(prov4ml.list_runs_in_proj(tmp_path)) == 3


def test_documents_of_other_tools_become_valid_in_a_collection(tmp_path: Path) -> None:
    peer = {
        "prefix": {"provml": "prov-ml", "default": "exp_GR0_0"},
        "activity": {"exp_GR0_0": {}, "psutil//TRAINING": {}},
        "entity": {
            "input": [{"prov:value": "1"}, {"prov:value": "4"}],
            "a name.py": {"prov:type": "provml:Model", "prov:label": "a name.py"},
        },
        "used": {"_:id1": {"prov:activity": "exp_GR0_0", "prov:entity": "a name.py"}},
    }
    source = tmp_path / "prov_peer.json"
    source.write_text(json.dumps(peer))
    for options in ((), ("--merged",)):
        output = tmp_path / f"out{len(options)}"
        path = collection(tmp_path, output, *options)
        whole = prov.model.ProvDocument.deserialize(path)
        (told,) = list(whole.bundles) or [whole]
        assert records(told) == 6
        assert all(
            "://" in namespace.uri or namespace.uri.startswith("urn:")
            for namespace in told.namespaces
        )
        source.touch()
