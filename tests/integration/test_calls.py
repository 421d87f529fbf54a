"""What the standalone calls keep, and where, in every state that a run can be in."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

import prov4ml
from provml_lightning.errors import (
    ConfigurationError,
    NoActiveRunError,
    RecordError,
    RunClosedError,
    StorageError,
)

RUN = Path("prov/digits_0")
MASK = "***"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def _run() -> None:
    prov4ml.start_run("digits")


def frame(name: str, context: str | None = None, run: Path = RUN) -> pd.DataFrame:
    return prov4ml.get_metric(run, name, context)


def parameters(run: Path = RUN) -> dict[str, Any]:
    return prov4ml.list_parameters(str(run))


def document(run: Path = RUN) -> dict[str, Any]:
    return dict(json.loads((run / f"prov_{run.name}.json").read_text()))


def files(run: Path = RUN) -> list[str]:
    """Return the artifacts of a run but the requirements that every run has."""
    found = (path.relative_to(run / "artifacts") for path in (run / "artifacts").rglob("*"))
    return sorted(path.as_posix() for path in found if path.name != "requirements.txt")


# --- runs -------------------------------------------------------------------------------------


def test_the_documents_first_example_leaves_one_run_and_nothing_beside_it() -> None:
    run = prov4ml.start_run(
        prov_user_namespace="www.example.org",
        experiment_name="digits",
        provenance_save_dir="prov",
        collect_all_processes=True,
        save_after_n_logs=100,
    )
    prov4ml.log_param("optimizer", "Adam")
    prov4ml.log_metric("Loss", 0.5, context=prov4ml.Context.TRAINING, step=0)
    prov4ml.log_metric("Loss", 0.25, prov4ml.Context.VALIDATION, step=0)
    prov4ml.end_run()

    assert run.directory == RUN.absolute()
    assert [path.name for path in Path.cwd().iterdir()] == ["prov"]
    assert prov4ml.list_runs_in_proj("prov") == [RUN]
    assert frame("Loss", "Training")["value"].tolist() == [0.5]
    assert frame("Loss", "Validation")["value"].tolist() == [0.25]
    assert parameters()["optimizer"] == "Adam"


def test_runs_of_an_experiment_are_counted_and_one_can_be_continued() -> None:
    for number in range(2):
        prov4ml.start_run("digits")
        prov4ml.log_metric("x", number)
        prov4ml.end_run()
    prov4ml.start_run("digits", use_run_id=0)
    prov4ml.log_metric("x", 7, step=1)
    prov4ml.end_run()
    assert [run.name for run in prov4ml.list_runs_in_proj("prov")] == ["digits_0", "digits_1"]
    assert frame("x")["value"].tolist() == [0.0, 7.0]


def test_a_nested_run_takes_the_calls_and_is_informed_by_the_outer_one() -> None:
    prov4ml.start_run("outer")
    prov4ml.log_param("where", "outer")
    prov4ml.start_run("inner")
    prov4ml.log_param("where", "inner")
    prov4ml.end_run()
    prov4ml.log_metric("after", 1.0)
    prov4ml.end_run()
    inner, outer = Path("prov/inner_0"), Path("prov/outer_0")
    assert (parameters(inner)["where"], parameters(outer)["where"]) == ("inner", "outer")
    assert frame("after", run=outer)["value"].tolist() == [1.0]
    assert list(prov4ml.list_metrics(inner)["label"]) == []
    uuid = json.loads((outer / "run.json").read_text())["uuid"]
    assert uuid in (inner / "prov_inner_0.json").read_text()


def test_a_run_is_a_context_manager_that_tells_how_it_ended() -> None:
    with prov4ml.start_run("good"):
        prov4ml.log_param("a", 1)
    with pytest.raises(ZeroDivisionError), prov4ml.start_run("bad"):
        _ = 1 / 0
    statuses = [
        json.loads(Path(f"prov/{n}_0/run.json").read_text())["status"] for n in ("good", "bad")
    ]
    assert statuses == ["completed", "failed"]
    assert "ZeroDivisionError" in Path("prov/bad_0/prov_bad_0.json").read_text()


def test_ending_a_run_without_one_says_what_to_do() -> None:
    with pytest.raises(NoActiveRunError, match="start_run"):
        prov4ml.end_run()
    prov4ml.start_run("digits")
    prov4ml.end_run()
    with pytest.raises(NoActiveRunError):
        prov4ml.end_run()


@pytest.mark.parametrize(
    "wrong",
    [
        {"experiment_name": ""},
        {"save_after_n_logs": 0},
        {"rank": -1},
        {"csv_separator": ";;"},
        {"metrics_file_type": "xls"},
        {"use_compressor": "rar"},
        {"use_run_id": -1},
    ],
)
def test_a_wrong_argument_raises_before_anything_is_written(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        prov4ml.start_run(**{"experiment_name": "digits", **wrong})
    assert list(Path.cwd().iterdir()) == []


def test_a_run_handle_says_that_it_has_ended() -> None:
    run = prov4ml.start_run("digits")
    prov4ml.end_run()
    with pytest.raises(RunClosedError, match="digits_0"):
        run.record_metric("x", 1.0)


def test_another_rank_keeps_nothing() -> None:
    prov4ml.start_run("digits", rank=1)
    prov4ml.log_metric("x", 1.0)
    prov4ml.log_param("a", 1)
    assert prov4ml.log_model("m", nn.Linear(1, 1)) is None
    prov4ml.end_run()
    assert list(Path.cwd().iterdir()) == []


# --- before, between and after runs -----------------------------------------------------------


def test_calls_before_any_run_wait_with_their_own_time_for_the_first_that_opens() -> None:
    Path("data.txt").write_text("seven")
    before = datetime.now(UTC)
    prov4ml.log_param("early", 1)
    prov4ml.log_metric("x", 1.0, "Training", step=3)
    prov4ml.log_artifact("data", "data.txt")
    prov4ml.log_artifact("value", {"a": 1})
    prov4ml.log_dataset("set", TensorDataset(torch.ones(3, 1)))
    prov4ml.log_model("model", nn.Linear(1, 1), log_model_layers=True)
    prov4ml.save_model_version("model", nn.Linear(1, 1))
    Path("data.txt").unlink()
    after = datetime.now(UTC)
    assert list(Path.cwd().iterdir()) == []

    prov4ml.start_run("digits")
    prov4ml.log_metric("x", 2.0, "Training", step=4)
    prov4ml.end_run()
    prov4ml.start_run("digits")
    prov4ml.end_run()

    found = frame("x", "Training")
    assert found["step"].tolist() == [3, 4]
    assert before <= found["timestamp"][0] <= after
    assert parameters()["early"] == 1
    assert (RUN / "artifacts/data.txt").read_text() == "seven"
    assert "value.json" in files()
    assert sum(name.endswith(".pt") for name in files()) == 2
    assert files(Path("prov/digits_1")) == []


def test_calls_between_runs_go_to_the_next_one() -> None:
    prov4ml.start_run("digits")
    prov4ml.end_run()
    prov4ml.log_param("between", value=True)
    prov4ml.start_run("digits")
    prov4ml.end_run()
    assert "between" not in parameters()
    assert parameters(Path("prov/digits_1"))["between"] is True


def test_a_wrong_value_before_any_run_raises_at_once() -> None:
    with pytest.raises(RecordError, match="'x'"):
        prov4ml.log_metric("x", "text")


def test_the_execution_time_needs_a_run() -> None:
    with pytest.raises(NoActiveRunError, match="start_run"):
        prov4ml.log_current_execution_time("time")


ORPHANS = "import prov4ml; prov4ml.log_param('a', 1); prov4ml.log_metric('x', 1.0)"


def test_calls_that_no_run_ever_took_are_counted_at_the_exit() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ORPHANS], check=True, capture_output=True, text=True
    )
    assert "2 log calls were dropped" in ended.stderr
    assert "start_run" in ended.stderr
    assert list(Path.cwd().iterdir()) == []


UNENDED = """
import prov4ml
prov4ml.start_run("digits")
prov4ml.log_metric("x", 1.0)
{}
"""


@pytest.mark.parametrize(
    ("last", "status"), [("", "completed"), ("raise KeyError(7)", "failed"), ("1/0", "failed")]
)
def test_a_run_that_nobody_ends_ends_with_the_interpreter(last: str, status: str) -> None:
    subprocess.run([sys.executable, "-c", UNENDED.format(last)], check=False, capture_output=True)
    assert json.loads((RUN / "run.json").read_text())["status"] == status
    assert frame("x")["value"].tolist() == [1.0]


# --- metrics and parameters -------------------------------------------------------------------


@pytest.mark.usefixtures("_run")
def test_every_kind_of_value_step_and_time_is_kept() -> None:
    when = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    prov4ml.log_metric("x", 1)
    prov4ml.log_metric("x", np.float32(0.5), step=np.int64(2))
    prov4ml.log_metric("x", torch.tensor([0.25]), step=None)
    prov4ml.log_metric("x", math.inf, step=1, timestamp=1_714_979_289_000)
    prov4ml.log_metric("x", True, step=1, timestamp=1_714_979_289.0)
    prov4ml.log_metric("x", -0.0, step=1, timestamp=when, epoch=5)
    prov4ml.end_run()
    found = frame("x")
    assert found["value"].tolist() == [1.0, 0.5, 0.25, math.inf, 1.0, -0.0]
    assert found["step"].tolist()[:2] == [0, 2]
    assert found["step"].isna().tolist() == [False, False, True, False, False, False]
    assert found["timestamp"].tolist()[3:] == [pd.Timestamp(when)] * 3
    assert found["epoch"].tolist()[5] == 5


@pytest.mark.usefixtures("_run")
@pytest.mark.parametrize("context", ["Training", "TRAINING", "training", prov4ml.Context.TRAINING])
def test_a_context_is_one_in_every_spelling(context: str) -> None:
    prov4ml.log_metric("x", 1.0, context)
    prov4ml.end_run()
    assert prov4ml.list_metrics(RUN)["context"].tolist() == ["Training"]


@pytest.mark.usefixtures("_run")
@pytest.mark.parametrize("value", ["text", None, [1.0], torch.ones(2), object()])
def test_what_is_not_one_number_raises_at_once(value: Any) -> None:
    with pytest.raises(RecordError, match="'x'"):
        prov4ml.log_metric("x", value)


@pytest.mark.usefixtures("_run")
def test_a_parameter_told_twice_is_kept_twice_and_the_last_is_current() -> None:
    prov4ml.log_param("lr", 0.1)
    prov4ml.log_param("lr", 0.2)
    prov4ml.end_run()
    assert prov4ml.get_parameter(RUN, "lr", "value") == 0.2
    assert "0.1" in json.dumps(document())


@pytest.mark.usefixtures("_run")
def test_parameters_keep_their_types_and_secrets_are_masked() -> None:
    told = {"i": 3, "f": 0.5, "b": True, "s": "x", "t": datetime(2024, 1, 2, tzinfo=UTC)}
    for key, value in told.items():
        prov4ml.log_param(key, value)
    prov4ml.log_param("api_token", "abc")
    prov4ml.log_param("optimizer", torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1))
    prov4ml.end_run()
    kept = parameters()
    assert {key: kept[key] for key in ("i", "f", "b", "s")} == {
        "i": 3,
        "f": 0.5,
        "b": True,
        "s": "x",
    }
    assert datetime.fromisoformat(str(kept["t"])) == told["t"]
    assert kept["api_token"] == MASK
    assert kept["optimizer"].startswith("SGD (")


@pytest.mark.usefixtures("_run")
def test_the_execution_time_is_seconds_since_the_run_began() -> None:
    prov4ml.log_current_execution_time("time", prov4ml.Context.TRAINING, 4)
    prov4ml.end_run()
    found = frame("time", "Training")
    assert 0 < found["value"][0] < 60
    assert found["step"].tolist() == [4]
    assert prov4ml.list_metrics(RUN)["unit"].tolist() == ["s"]


# --- artifacts --------------------------------------------------------------------------------


@pytest.mark.usefixtures("_run")
def test_a_file_a_folder_and_a_value_are_copied_into_the_run() -> None:
    Path("one.txt").write_text("1")
    Path("tree/deep").mkdir(parents=True)
    Path("tree/deep/two.txt").write_text("2")
    copies = [
        prov4ml.log_artifact("one", "one.txt", "Training", 3),
        prov4ml.log_artifact("tree", Path("tree")),
        prov4ml.log_artifact("numbers", {"a": [1, 2]}),
    ]
    prov4ml.end_run()
    assert all(copy is not None and copy.is_relative_to(RUN.absolute()) for copy in copies)
    assert files() == ["numbers.json", "one.txt", "tree", "tree/deep", "tree/deep/two.txt"]
    assert (RUN / "artifacts/one.txt").read_text() == "1"
    assert json.loads((RUN / "artifacts/numbers.json").read_text()) == {"a": [1, 2]}
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["one.txt", "prov", "tree"]


@pytest.mark.usefixtures("_run")
def test_a_reference_is_described_and_not_copied() -> None:
    Path("big.bin").write_bytes(b"abc")
    assert prov4ml.log_artifact("big", "big.bin", log_copy_in_prov_directory=False) is None
    prov4ml.end_run()
    assert files() == []
    # SHA-256 of "abc": FIPS 180-2, appendix B.1
    assert "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" in json.dumps(
        document()
    )


@pytest.mark.usefixtures("_run")
@pytest.mark.parametrize("copied", [True, False])
def test_a_path_where_nothing_is_raises(copied: bool) -> None:
    with pytest.raises(RecordError, match=r"missing\.txt"):
        prov4ml.log_artifact("x", "missing.txt", log_copy_in_prov_directory=copied)


@pytest.mark.usefixtures("_run")
def test_the_same_name_twice_is_two_artifacts() -> None:
    for content in ("first", "second"):
        Path("note.txt").write_text(content)
        prov4ml.log_artifact("note", "note.txt")
    prov4ml.end_run()
    assert files() == ["note-2.txt", "note.txt"]
    assert (RUN / "artifacts/note.txt").read_text() == "first"
    assert (RUN / "artifacts/note-2.txt").read_text() == "second"


@pytest.mark.usefixtures("_run")
def test_a_folder_that_contains_the_run_is_copied_without_it() -> None:
    Path("code.py").write_text("pass")
    prov4ml.log_artifact("here", ".")
    prov4ml.end_run()
    kept = files()
    assert "here/code.py" in kept
    assert not any("digits_0" in name for name in kept)


@pytest.mark.usefixtures("_run")
def test_an_odd_name_stays_inside_the_run() -> None:
    Path("x.txt").write_text("x")
    copy = prov4ml.log_artifact("../../ä b/x", "x.txt")
    prov4ml.end_run()
    assert copy is not None
    assert copy.resolve().is_relative_to((RUN / "artifacts").resolve())
    assert "../../ä b/x" in json.dumps(document(), ensure_ascii=False)


# --- models and data --------------------------------------------------------------------------


@pytest.mark.usefixtures("_run")
def test_versions_of_a_model_are_a_chain_of_files_that_load_again() -> None:
    model = nn.Linear(2, 1)
    paths = []
    for step in range(3):
        nn.init.constant_(model.weight, float(step))
        paths.append(prov4ml.save_model_version("model", model, "Training", step))
    prov4ml.end_run()
    assert files() == ["model", "model/model_0.pt", "model/model_1.pt", "model/model_2.pt"]
    loaded = [torch.load(path, weights_only=True)["weight"][0, 0].item() for path in paths if path]
    assert loaded == [0.0, 1.0, 2.0]
    assert len(document()["wasDerivedFrom"]) == 2


@pytest.mark.usefixtures("_run")
def test_versions_that_are_not_incremental_keep_the_last_file_alone() -> None:
    model = nn.Linear(2, 1)
    for step in range(3):
        nn.init.constant_(model.weight, float(step))
        path = prov4ml.save_model_version("model", model, step=step, incremental=False)
    prov4ml.end_run()
    assert path is not None
    assert files() == ["model", f"model/{path.name}"]
    assert torch.load(path, weights_only=True)["weight"][0, 0].item() == 2.0


@pytest.mark.usefixtures("_run")
def test_a_model_has_its_numbers_and_on_request_its_layers() -> None:
    prov4ml.log_model("bare", nn.Linear(2, 1), log_model_info=False)
    prov4ml.log_model("model", nn.Sequential(nn.Linear(2, 3), nn.ReLU()), log_model_layers=True)
    prov4ml.end_run()
    told = json.dumps(document())
    assert '"9"' in told or ": 9" in told  # 2 * 3 weights and 3 biases
    layers = json.loads(next((RUN / "artifacts/model").glob("*.json")).read_text())
    assert "Linear" in json.dumps(layers)


@pytest.mark.usefixtures("_run")
def test_something_without_weights_is_not_a_model() -> None:
    with pytest.raises(RecordError, match="state_dict"):
        prov4ml.log_model("model", object())


@pytest.mark.usefixtures("_run")
def test_a_loader_a_subset_and_a_data_set_have_their_true_numbers() -> None:
    data = TensorDataset(torch.arange(10.0).unsqueeze(1))
    prov4ml.log_dataset("loader", DataLoader(data, batch_size=4, shuffle=True))
    prov4ml.log_dataset("subset", Subset(data, range(6)))
    prov4ml.log_dataset("bare", data, log_dataset_info=False)
    before = torch.get_rng_state()
    prov4ml.log_dataset("again", DataLoader(data, batch_size=4, shuffle=True))
    assert torch.equal(before, torch.get_rng_state())
    prov4ml.end_run()
    assert len(prov4ml.list_entities(RUN, "provml:Dataset")) == 4
    told = json.dumps(document())
    for number in (10, 6, 4, 3):
        assert f'"{number}"' in told or f": {number}" in told


def test_a_folder_that_cannot_be_written_is_refused_at_the_start() -> None:
    Path("prov").write_text("a file stands here")
    with pytest.raises(StorageError, match="prov"):
        prov4ml.start_run("digits")
    assert os.listdir() == ["prov"]  # noqa: PTH208


@pytest.mark.parametrize("folder", ["journal", "metrics", "artifacts"])
def test_a_planted_link_does_not_lead_a_runs_files_elsewhere(tmp_path: Path, folder: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    planted = tmp_path / "prov" / "exp_3"
    planted.mkdir(parents=True)
    (planted / folder).symlink_to(elsewhere)
    with pytest.raises(ConfigurationError, match="is a link"):
        prov4ml.start_run("exp", provenance_save_dir=tmp_path / "prov", use_run_id=3)
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize(
    "wrong",
    [
        {"use_run_id": True},
        {"prov_user_namespace": 5},
        {"provenance_save_dir": 5},
        {"provenance_save_dir": "a\0b"},
        {"save_after_n_logs": 0},
    ],
)
def test_a_setting_that_cannot_work_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        prov4ml.start_run("exp", **wrong)
    assert not list(tmp_path.iterdir())
