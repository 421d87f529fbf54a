"""Runs in places that are not as they should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

import prov4ml
from provml_lightning.errors import ConfigurationError, RecordError, StorageError
from provml_lightning.runtime.recovery import recover
from provml_lightning.storage.layout import RunLayout

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the process in a working directory that was removed."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()


@pytest.mark.usefixtures("nowhere")
def test_a_run_needs_no_working_directory_where_its_folder_is_absolute(tmp_path: Path) -> None:
    with prov4ml.start_run("e", provenance_save_dir=tmp_path / "prov"):
        prov4ml.log_metric("m", 1.0)
    assert list(prov4ml.get_metric(tmp_path / "prov" / "e_0", "m")["value"]) == [1.0]


@pytest.mark.usefixtures("nowhere")
def test_a_relative_folder_in_a_removed_working_directory_is_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigurationError, match="give an absolute path"):
        prov4ml.start_run("e")


def test_an_artifact_that_is_not_there_leaves_no_empty_file(tmp_path: Path) -> None:
    with prov4ml.start_run("e", provenance_save_dir=tmp_path), pytest.raises(RecordError):
        prov4ml.log_artifact("weights", tmp_path / "missing")
    left = sorted(path.name for path in (tmp_path / "e_0" / "artifacts").iterdir())
    assert left == ["requirements.txt"]


def test_a_model_without_weights_leaves_no_empty_file(tmp_path: Path) -> None:
    with prov4ml.start_run("e", provenance_save_dir=tmp_path):
        with pytest.raises(RecordError, match="class int has no state_dict"):
            prov4ml.log_model("net", 3)
        with pytest.raises(RecordError, match="class int has no state_dict"):
            prov4ml.save_model_version("net", 3)
    left = [path.name for path in (tmp_path / "e_0" / "artifacts").rglob("*") if path.is_file()]
    assert left == ["requirements.txt"]


def test_a_model_and_an_artifact_of_one_name_are_both_kept(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("of the net")
    with prov4ml.start_run("e", provenance_save_dir=tmp_path):
        notes = prov4ml.log_artifact("net", tmp_path / "notes")
        weights = prov4ml.log_model("net", torch.nn.Linear(1, 1))
        version = prov4ml.save_model_version("net", torch.nn.Linear(1, 1))
    artifacts = tmp_path / "e_0" / "artifacts"
    assert notes == artifacts / "net"
    assert notes.read_text() == "of the net"
    assert (weights, version) == (artifacts / "net-2" / "net.pt", artifacts / "net-2" / "net_0.pt")
    assert (artifacts / "net-2" / "net_0.pt").is_file()


def test_a_run_that_was_moved_while_open_is_written_where_it_lies_then(tmp_path: Path) -> None:
    prov4ml.start_run("e", provenance_save_dir=tmp_path / "here")
    prov4ml.log_metric("m", 1.0)
    (tmp_path / "here").rename(tmp_path / "there")
    prov4ml.log_metric("m", 2.0)
    with pytest.raises(StorageError, match="call 'prov4ml recover' where it lies now"):
        prov4ml.end_run()
    moved = tmp_path / "there" / "e_0"
    recover(RunLayout(moved))
    assert list(prov4ml.get_metric(moved, "m")["value"]) == [1.0, 2.0]
