"""Crates of real runs before the validator of the RO-Crate community, offline."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest
import requests
import urllib3
from rocrate_validator import services
from rocrate_validator.models import ValidationSettings
from rocrate_validator.utils.http import HttpRequester

import prov4ml
from provml_lightning.capture.artifacts import describe_file
from provml_lightning.domain.records import Artifact, Dataset, ModelVersion, Parameter, Status
from provml_lightning.domain.settings import MetricsType, RunSettings
from provml_lightning.errors import ExportError
from provml_lightning.exporters.crate import write_crate
from provml_lightning.runtime.opening import open_run
from provml_lightning.runtime.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    Issues = set[tuple[str, str]]

CONTEXTS = {
    "https://w3id.org/ro/crate/1.1/context": "ro-crate-1.1.json",
    "https://w3id.org/ro/terms/workflow-run/context": "workflow-run.json",
}
# What only a publisher knows; everything else that is recommended is there.
PUBLISHING = {
    ("RECOMMENDED", "The `publisher` property of a `Root Data Entity` SHOULD be an `Organization`"),
    ("RECOMMENDED", "The author SHOULD have an organizational affiliation."),
    (
        "RECOMMENDED",
        (
            "The author SHOULD have a Contextual Entity which specifies the organizational"
            " `affiliation`."
        ),
    ),
}
NOW = 1_800_000_000_000_000_000
ODD = 'l "r"/<b>: {x}; # % 学習率'


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The validator's store of web pages, with the two contexts that a crate names."""
    store = tmp_path_factory.mktemp("validator") / "cache"
    HttpRequester.initialize_cache(cache_path=str(store), offline=True)
    for address, name in CONTEXTS.items():
        body = (Path(__file__).parent / "contexts" / name).read_bytes()
        page = requests.Response()
        page.status_code, page.url = 200, address
        page.headers["Content-Type"] = "application/ld+json"
        page.request = requests.Request("GET", address).prepare()
        page.raw = urllib3.HTTPResponse(
            io.BytesIO(body), page.headers, 200, preload_content=False, request_url=address
        )
        HttpRequester().session.cache.save_response(page)
    return store


@pytest.fixture
def issues(cache: Path) -> Callable[[Path], Issues]:
    """Return what the validator finds wrong, with RO-Crate 1.1 and Process Run Crate 0.5."""

    def found(crate: Path) -> Issues:
        settings = ValidationSettings(
            rocrate_uri=str(crate),
            profile_identifier="process-run-crate-0.5",  # which takes in ro-crate-1.1
            requirement_severity="RECOMMENDED",
            offline=True,
            skip_availability_check=True,
            cache_path=cache,
        )
        with warnings.catch_warnings():  # the validator's own are not ours
            warnings.simplefilter("ignore")
            result = services.validate(settings)
        return {(issue.severity.name, issue.message) for issue in result.get_issues()}

    return found


def start(folder: Path, name: str = "digits", **settings: Any) -> Run:
    run = open_run(RunSettings(experiment_name=name, provenance_save_dir=folder, **settings))
    assert isinstance(run, Run)
    return run


def fill(run: Run, name: str = "lr") -> None:
    """Record one of everything under one name."""
    weights = run.layout.artifacts / "weights.pt"
    weights.write_bytes(b"weights")
    stored = describe_file(weights, shown_as="artifacts/weights.pt")
    run.record(Parameter(time=NOW, key=name, value=0.001))
    run.record(Parameter(time=NOW, key="score", value=0.75, is_output=True))
    run.record(Dataset(time=NOW, label=name, context="Training", attributes={"samples": 8}))
    run.record(ModelVersion(time=NOW, name=name, version=0, stored=stored, context="Training"))
    run.record_metric(name, 0.5, "Training", 0, unit="J")
    run.record_metric(name, 0.25, name, 0)


def graph_of(crate: Path) -> dict[str, dict[str, Any]]:
    metadata = crate if crate.is_file() else crate / "ro-crate-metadata.json"
    return {entity["@id"]: entity for entity in json.loads(metadata.read_text())["@graph"]}


def test_a_completed_run_is_a_crate(tmp_path: Path, issues: Callable[[Path], Issues]) -> None:
    run = start(tmp_path)
    fill(run)
    run.close()

    metadata = write_crate(run.directory)

    assert metadata == run.directory / "ro-crate-metadata.json"
    assert issues(run.directory) == PUBLISHING


def test_the_archive_unpacks_to_the_crate(tmp_path: Path, issues: Callable[[Path], Issues]) -> None:
    run = start(tmp_path / "prov")
    fill(run)
    run.close()

    archive = write_crate(run.directory, archive=True, license_name="CC-BY-4.0")
    again = write_crate(run.directory, archive=True, license_name="CC-BY-4.0").read_bytes()

    assert archive == tmp_path / "prov" / "digits_0.zip"
    assert archive.read_bytes() == again
    assert issues(archive) == PUBLISHING
    with ZipFile(archive) as opened:
        opened.extractall(tmp_path / "out")
    for path in run.directory.rglob("*"):
        if path.is_file():
            copy = tmp_path / "out" / path.relative_to(run.directory)
            assert copy.read_bytes() == path.read_bytes()


def test_a_failed_run_is_a_crate_of_a_failed_action(
    tmp_path: Path, issues: Callable[[Path], Issues]
) -> None:
    run = start(tmp_path)
    fill(run)
    run.close(Status.FAILED, ValueError('loss is "nan" <here>'))

    write_crate(run.directory)

    action = graph_of(run.directory)["#run"]
    assert action["actionStatus"] == "http://schema.org/FailedActionStatus"
    assert action["error"] == 'ValueError: loss is "nan" <here>'
    assert issues(run.directory) == PUBLISHING


def test_a_killed_run_is_a_crate_whose_action_has_no_end(
    tmp_path: Path, issues: Callable[[Path], Issues]
) -> None:
    program = (
        "import os; from provml_lightning.domain.settings import RunSettings;"
        "from provml_lightning.runtime.opening import open_run;"
        "run = open_run(RunSettings(experiment_name='k'));"
        "run.record_metric('loss', 0.5, 'Training', 0); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=False)
    run = tmp_path / "prov" / "k_0"

    write_crate(run)

    action = graph_of(run)["#run"]
    assert action["actionStatus"] == "http://schema.org/FailedActionStatus"
    assert "endTime" not in action
    ends = ("RECOMMENDED", "The Action SHOULD have an endTime in ISO 8601 format")
    assert issues(run) == PUBLISHING | {ends}


def test_odd_names_stay_as_they_are(tmp_path: Path, issues: Callable[[Path], Issues]) -> None:
    run = start(tmp_path / "a b%20c", ODD)
    odd = run.layout.artifacts / "a b%20;#c é.txt"
    odd.write_text("text")
    stored = describe_file(odd, shown_as="artifacts/a b%20;#c é.txt")
    fill(run, ODD)
    run.record(Artifact(time=NOW, name=ODD, stored=stored))
    run.close()

    write_crate(run.directory)
    # The validator cannot open a folder whose own name holds a percent sign.
    moved = run.directory.rename(tmp_path / "moved")

    assert issues(moved) == PUBLISHING
    graph = graph_of(moved)
    assert graph["artifacts/a%20b%2520%3B%23c%20%C3%A9.txt"]["name"] == ODD
    assert ODD in {entity.get("name") for entity in graph.values() if "value" in entity}


def test_a_run_at_a_known_commit_has_that_for_its_instrument(
    tmp_path: Path, issues: Callable[[Path], Issues]
) -> None:
    run = start(tmp_path)
    script = run.layout.artifacts / "train.py"
    script.write_text("print(1)")
    run.record(
        Artifact(
            time=NOW,
            name="source_code",
            stored=describe_file(script, shown_as="artifacts/train.py"),
            is_input=True,
            attributes={"remote": "git@example.org:ada/net.git", "commit": "0f" * 20},
        )
    )
    run.record_metric("loss", 0.5, "Training", 0)
    run.close()

    write_crate(run.directory)

    graph = graph_of(run.directory)
    instrument = graph[graph["#run"]["instrument"]["@id"]]
    assert instrument["@id"] == f"https://example.org/ada/net/tree/{'0f' * 20}"
    assert instrument["codeRepository"] == "https://example.org/ada/net"
    assert instrument["version"] == "0f" * 20
    assert issues(run.directory) == PUBLISHING


@pytest.mark.parametrize("commits", [("0f" * 20,), ("0f" * 20, "1e" * 20)])
def test_the_commit_that_a_run_found_by_itself_is_its_instrument_unless_there_were_several(
    commits: tuple[str, ...],
    tmp_path: Path,
    issues: Callable[[Path], Issues],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for commit in commits:
        told = {"commit": commit, "remote": "https://example.org/a/net"}
        monkeypatch.setattr(
            "provml_lightning.runtime.surroundings.git_head", lambda _, told=told: told
        )
        monkeypatch.setattr("provml_lightning.runtime.surroundings.git_dirty", lambda _: True)
        with prov4ml.start_run("net", provenance_save_dir=tmp_path, use_run_id=0):
            prov4ml.log_metric("loss", 0.5, "Training", 0)

    write_crate(tmp_path / "net_0")

    graph = graph_of(tmp_path / "net_0")
    instrument = graph[graph["#run"]["instrument"]["@id"]]
    found = instrument.get("codeRepository"), instrument.get("version")
    assert found == (
        ("https://example.org/a/net", commits[0]) if len(commits) == 1 else (None, None)
    )
    assert ("with changes" in instrument.get("description", "")) == (len(commits) == 1)
    assert issues(tmp_path / "net_0") == PUBLISHING


def test_inputs_results_and_values_are_what_was_recorded(tmp_path: Path) -> None:
    run = start(tmp_path)
    fill(run)
    run.close()

    write_crate(run.directory)

    graph = graph_of(run.directory)
    action = graph["#run"]
    named = {
        kind: {graph[one["@id"]]["name"] for one in action[kind]} for kind in ("object", "result")
    }
    assert named["object"] == {"lr", "requirements.txt"}
    assert {"score", "lr", "lr_0", "prov_digits_0.json"} <= named["result"]
    assert graph["#param/~~/lr"]["value"] == 0.001
    assert graph["#param/~~/score"]["value"] == 0.75
    metric = graph["#metric/Training/lr"]
    assert (metric["value"], metric["unitText"]) == (0.5, "J")
    assert metric["description"] == "last value, in Training"
    assert graph["./"]["datePublished"] == action["endTime"]
    assert graph["#license"]["name"] == "No license stated"


def test_what_the_whole_run_used_is_a_result_and_not_its_last_interval_alone(
    tmp_path: Path, issues: Callable[[Path], Issues], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVML_RAM_POWER_W", "10")
    with prov4ml.start_run("digits", provenance_save_dir=tmp_path, carbon_intensity=360) as run:
        for step in range(3):
            prov4ml.log_carbon_metrics("Training", step)
    assert isinstance(run, Run)

    write_crate(run.directory)

    graph = graph_of(run.directory)
    total, emitted = graph["#total_energy"], graph["#total_emissions"]
    assert {"@id": "#total_energy"} in graph["#run"]["result"]
    assert (total["name"], total["unitText"]) == ("total energy", "J")
    assert emitted["unitText"] == "gCO2eq"
    assert emitted["value"] == pytest.approx(total["value"] * 0.0001)
    consumed = prov4ml.get_metric(run.directory, "energy_consumed")["value"].sum()
    assert total["value"] >= consumed > 0
    assert issues(run.directory) == PUBLISHING


def test_size_and_digest_are_those_of_the_file(tmp_path: Path) -> None:
    run = start(tmp_path)
    fill(run)
    run.close()

    write_crate(run.directory)

    weights = graph_of(run.directory)["artifacts/weights.pt"]
    assert weights["contentSize"] == "7"
    # printf weights | sha256sum
    assert weights["sha256"] == "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c"
    assert weights["encodingFormat"] == "application/x-pytorch"


def test_the_same_run_gives_the_same_bytes_however_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(tmp_path / "prov")
    fill(run)
    run.close()
    absolute = write_crate(run.directory).read_bytes()
    monkeypatch.chdir(tmp_path)
    relative = write_crate(Path("prov/digits_0")).read_bytes()
    monkeypatch.chdir(run.directory)

    assert absolute == relative == write_crate(Path()).read_bytes()


def test_links_that_lead_out_of_the_run_are_left_out(
    tmp_path: Path, issues: Callable[[Path], Issues]
) -> None:
    (tmp_path / "secret").write_text("secret")
    run = start(tmp_path / "prov")
    fill(run)
    run.close()
    (run.directory / "artifacts" / "out.txt").symlink_to(tmp_path / "secret")
    (run.directory / "artifacts" / "up").symlink_to(tmp_path)
    (run.directory / "artifacts" / "circle").symlink_to("circle")
    (run.directory / "artifacts" / "last.pt").symlink_to("weights.pt")

    archive = write_crate(run.directory, archive=True)

    with ZipFile(archive) as opened:
        names = [name for name in opened.namelist() if name.startswith("artifacts/")]
        assert opened.read("artifacts/last.pt") == b"weights"
    assert names == ["artifacts/last.pt", "artifacts/requirements.txt", "artifacts/weights.pt"]
    assert issues(archive) == PUBLISHING


def test_a_store_of_many_files_is_one_folder_in_the_crate(
    tmp_path: Path, issues: Callable[[Path], Issues]
) -> None:
    run = start(tmp_path, metrics_file_type=MetricsType.ZARR)
    fill(run)
    run.close()

    write_crate(run.directory)

    graph = graph_of(run.directory)
    assert graph["metrics/Training.zarr/"]["@type"] == "Dataset"
    assert not [
        name for name in graph if name.startswith("metrics/Training.zarr/") and name[-1] != "/"
    ]
    assert issues(run.directory) == PUBLISHING


def test_the_validator_sees_a_broken_crate(
    tmp_path: Path, issues: Callable[[Path], Issues]
) -> None:
    run = start(tmp_path)
    fill(run)
    run.close()
    metadata = write_crate(run.directory)
    content = json.loads(metadata.read_text())
    for entity in content["@graph"]:
        entity.pop("instrument", None)
        entity.pop("license", None)
    metadata.write_text(json.dumps(content))
    (run.directory / "run.json").unlink()

    required = {message.split("(")[0] for severity, message in issues(run.directory)
                if severity == "REQUIRED"}  # fmt: skip

    assert len(required) == 3
    assert any("instrument" in message for message in required)
    assert any("`license`" in message for message in required)
    assert any("'run.json'" in message for message in required)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="not the folder of a run"):
        write_crate(tmp_path)
