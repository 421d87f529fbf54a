from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from provml_lightning.errors import RecordNotFoundError
from provml_lightning.query import list_provjson_in_proj, list_runs_in_proj

if TYPE_CHECKING:
    from pathlib import Path


def _foreign(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(json.dumps({"prefix": {}}))
    return folder


def test_runs_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        _foreign(tmp_path / f"digits_{number}", f"prov_digits_GR0_{number}.json")
    names = [run.name for run in list_runs_in_proj(tmp_path)]
    assert names == ["digits_1", "digits_2", "digits_10"]


def test_runs_are_found_at_any_depth_but_never_inside_a_run(tmp_path: Path) -> None:
    outer = _foreign(tmp_path / "logs" / "exp" / "version_0", "prov_x.json")
    _foreign(outer / "artifacts" / "copied_0", "prov_copied.json")
    _foreign(tmp_path / ".cache" / "hidden_0", "prov_hidden.json")
    assert list_runs_in_proj(str(tmp_path)) == [outer]


def test_a_killed_run_is_found_by_its_journal(tmp_path: Path) -> None:
    journal = tmp_path / "digits_0" / "journal"
    journal.mkdir(parents=True)
    (journal / "rank-00000.jsonl").touch()
    (tmp_path / "novel" / "journal").mkdir(parents=True)
    assert list_runs_in_proj(tmp_path) == [tmp_path / "digits_0"]
    assert list_provjson_in_proj(tmp_path) == []


def test_links_are_not_followed(tmp_path: Path) -> None:
    run = _foreign(tmp_path / "elsewhere" / "run_0", "prov_run.json")
    project = tmp_path / "project"
    project.mkdir()
    (project / "link").symlink_to(run)
    (project / "loop").symlink_to(project)
    assert list_runs_in_proj(project) == []


def test_every_rank_s_document_is_listed(tmp_path: Path) -> None:
    run = _foreign(tmp_path / "e_0", "prov_e_GR10_0.json", "prov_e_GR2_0.json", "run.json")
    assert list_provjson_in_proj(tmp_path) == [
        run / "prov_e_GR2_0.json",
        run / "prov_e_GR10_0.json",
    ]


def test_an_archive_beside_the_runs_is_no_run(tmp_path: Path) -> None:
    run = _foreign(tmp_path / "e_0", "prov_e.json")
    with zipfile.ZipFile(tmp_path / "e_0.zip", "w") as archive:
        archive.write(run / "prov_e.json", "prov_e.json")
    assert list_provjson_in_proj(tmp_path) == [run / "prov_e.json"]


def test_a_project_that_is_not_there_is_an_error_and_an_empty_one_is_not(tmp_path: Path) -> None:
    assert list_runs_in_proj(tmp_path) == []
    with pytest.raises(RecordNotFoundError, match="no folder"):
        list_runs_in_proj(tmp_path / "absent")
