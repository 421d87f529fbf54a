from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from provml_lightning.domain.records import Parameter
from provml_lightning.domain.settings import RunSettings
from provml_lightning.errors import IncompleteRunWarning
from provml_lightning.query import (
    get_metric,
    get_parameter,
    list_activities,
    list_entities,
    list_metric_paths,
    list_metrics,
    list_parameters,
    list_provjson_in_proj,
    list_runs_in_proj,
)
from provml_lightning.runtime.opening import open_run
from provml_lightning.runtime.run import Run

KILLED = """
import os, signal, sys, time
from pathlib import Path
from provml_lightning.domain.records import Parameter
from provml_lightning.domain.settings import RunSettings
from provml_lightning.runtime.opening import open_run

run = open_run(RunSettings(experiment_name="digits", provenance_save_dir=Path(sys.argv[1])))
run.record(Parameter(time=time.time_ns(), key="lr", value=0.001, context="Training"))
for step in range(1000):
    run.record_metric("loss", 1.0 / (step + 1), "Training", step, epoch=step // 100)
    if step == 500:
        run.snapshot()
run.record_metric("a/b c", float("nan"), None, None, "probe")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    return tmp_path / "digits_0"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    opened = open_run(RunSettings(experiment_name="digits", provenance_save_dir=tmp_path))
    assert isinstance(opened, Run)
    return opened


def _log(run: Run) -> None:
    run.record(Parameter(time=time.time_ns(), key="lr", value=0.1, context="Training"))
    run.record(Parameter(time=time.time_ns(), key="lr", value=0.2, context="Training"))
    for step in range(5):
        run.record_metric("loss", step / 2, "Training", step, epoch=0)
        run.record_metric("loss", step * 2.0, "Validation", None)
    run.record_metric("power", math.inf, "Training", 7, "nvml", unit="W")


def test_a_killed_run_answers_with_everything_it_logged(killed: Path) -> None:
    for source in (killed, next(killed.glob("prov_*.json"))):
        with pytest.warns(IncompleteRunWarning, match="is incomplete") as caught:
            frame = get_metric(source, "loss", "Training")
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert frame["value"].tolist() == [1.0 / (step + 1) for step in range(1000)]
        assert frame["step"].tolist() == list(range(1000))
        assert frame["epoch"][999] == 9
        assert frame["rank"].unique().tolist() == [0]
        assert str(frame["timestamp"].dtype) == "datetime64[us, UTC]"


def test_a_killed_run_answers_every_question_and_stays_as_it_is(killed: Path) -> None:
    before = _contents(killed)
    with pytest.warns(IncompleteRunWarning):
        assert get_parameter(killed, "Training", "lr") == 0.001
    with pytest.warns(IncompleteRunWarning):
        table = list_metrics(killed)
    assert table["label"].tolist() == ["a/b c", "loss"]
    assert table["rows"].tolist() == [1, 1000]
    with pytest.warns(IncompleteRunWarning):
        assert get_metric(killed, "a/b c", source="probe")["value"].isna().tolist() == [True]
    with pytest.warns(IncompleteRunWarning):
        assert "context/Training" in list_activities(killed)
    assert list_runs_in_proj(killed.parent) == [killed]
    assert _contents(killed) == before


def test_a_killed_run_without_any_document_answers(killed: Path) -> None:
    document = next(killed.glob("prov_*.json"))
    document.unlink()
    shutil.rmtree(killed / "metrics")
    with pytest.warns(IncompleteRunWarning):
        assert len(get_metric(document, "loss")) == 1000
    assert list_provjson_in_proj(killed.parent) == []


def test_a_run_that_ended_answers_without_a_warning(run: Run) -> None:
    _log(run)
    run.close()
    frame = get_metric(run.directory, "loss", "Training")
    assert frame["value"].tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert frame["step"].tolist() == [0, 1, 2, 3, 4]
    assert get_metric(run.directory, "loss", "Validation")["step"].isna().all()
    assert get_metric(run.directory, "power", source="nvml")["value"].tolist() == [math.inf]
    assert get_parameter(run.directory, "Training", "lr") == 0.2
    assert list_parameters(run.directory)["lr"] == [0.1, 0.2]
    assert get_parameter(run.directory, "digits_0", "status") == "completed"
    assert len(list_entities(run.directory, "provml:Metric")) == 3
    table = list_metrics(run.directory, "Training").set_index("label")
    assert table.loc["power", "unit"] == "W"
    assert table.loc["loss", "rows"] == 5
    assert table.loc["loss", "last"] == 2.0
    for path in list_metric_paths(run.directory, file_type="parquet").values():
        assert Path(path).is_file()


def test_an_open_run_answers_with_the_latest_value(run: Run) -> None:
    _log(run)
    run.snapshot()
    assert len(get_metric(run.directory, "loss", "Training")) == 5
    run.record_metric("loss", 9.0, "Training", 5)
    with pytest.warns(IncompleteRunWarning, match="running"):
        assert get_metric(run.directory, "loss", "Training")["value"].tolist()[-1] == 9.0
    run.close()
    assert len(get_metric(run.directory, "loss", "Training")) == 6


def test_a_run_answers_alike_moved_zipped_and_from_elsewhere(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _log(run)
    run.close()
    expected = get_metric(run.directory, "loss", "Training")
    moved = Path(shutil.move(run.directory, tmp_path / "moved"))
    archive = shutil.make_archive(str(tmp_path / "zipped"), "zip", moved.parent, moved.name)
    monkeypatch.chdir("/")
    for source in (moved, str(moved / "prov_digits_0.json"), archive):
        pd.testing.assert_frame_equal(get_metric(source, "loss", "Training"), expected)


def test_every_name_is_found_again_and_only_that_one(run: Run) -> None:
    names = ["", " ", "loss", "Loss", "val/loss", "a:b", "a_b", "ünï ☃", 'q"uote\n', "..", "None"]
    contexts = [None, "Training", "own/ctx", "b"]
    sources = [None, "None", "", "nvml"]
    keys = [(name, context, source) for name in names for context in contexts for source in sources]
    for number, (name, context, source) in enumerate(keys):
        run.record_metric(name, number, context, number, source)
    run.close()
    table = list_metrics(run.directory)
    assert len(table) == len(keys)
    for identifier, row in zip(table["id"], table.to_dict("records"), strict=True):
        key = (row["label"], row["context"], row["source"])
        assert get_metric(run.directory, identifier)["value"].tolist() == [keys.index(key)]
    assert get_metric(run.directory, "a:b", "own/ctx", "nvml")["step"].tolist() == [
        keys.index(("a:b", "own/ctx", "nvml"))
    ]


def _contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (os.stat(path).st_mtime_ns, path.read_bytes()) for path in files}  # noqa: PTH116
