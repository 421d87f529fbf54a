from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from provml_lightning.capture.places import folder_for, free_name, written_whole
from provml_lightning.errors import RecordError, StorageError

if TYPE_CHECKING:
    from pathlib import Path

TAKE_TWENTY = """
import sys
from pathlib import Path
from provml_lightning.capture.places import free_name
for _ in range(20):
    print(free_name(Path(sys.argv[1]), "model.pt").name)
"""


def test_the_number_stands_before_the_suffix(tmp_path: Path) -> None:
    names = ["model.pt", "data.tar.gz", "README", ".hidden", "v1.2.txt"]

    assert [free_name(tmp_path, name).name for name in names] == names
    assert [free_name(tmp_path, name).name for name in names] == [
        "model-2.pt",
        "data-2.tar.gz",
        "README-2",
        ".hidden-2",
        "v1.2-2.txt",
    ]
    assert free_name(tmp_path, "model.pt").name == "model-3.pt"


def test_the_number_of_a_folder_stands_at_its_end(tmp_path: Path) -> None:
    free_name(tmp_path, "v1.2", is_folder=True)

    second = free_name(tmp_path, "v1.2", is_folder=True)

    assert second.name == "v1.2-2"
    assert second.is_dir()


def test_a_folder_whose_name_a_file_has_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "net").touch()
    (tmp_path / "net-2").symlink_to("nowhere")
    assert folder_for(tmp_path, "net") == tmp_path / "net-3"
    (tmp_path / "net-3").mkdir()
    assert folder_for(tmp_path, "net") == tmp_path / "net-3"
    assert folder_for(tmp_path, "other") == tmp_path / "other"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "a/", "../x"])
def test_a_name_with_a_way_out_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordError, match="cannot be the name of a file"):
        free_name(tmp_path, name)


def test_a_planted_link_is_not_taken_for_free(tmp_path: Path) -> None:
    (tmp_path / "name").symlink_to(tmp_path / "nothing")

    assert free_name(tmp_path, "name").name == "name-2"
    assert not (tmp_path / "nothing").exists()


def test_processes_that_ask_at_once_get_different_names(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TAKE_TWENTY, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    names = [name for process in processes for name in process.communicate()[0].split()]

    assert len(names) == len(set(names)) == 60


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StorageError, match="free space"):
        free_name(tmp_path / "file" / "artifacts", "name")


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    with written_whole(tmp_path / "new" / "file") as temporary:
        temporary.write_text("whole")
        assert not (tmp_path / "new" / "file").exists()
        assert temporary.name.startswith(".file.")
        assert temporary.suffix == ".partial"

    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file"]


def test_after_a_failure_the_older_file_is_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("older")

    def interrupted() -> None:
        with written_whole(tmp_path / "file") as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert [path.read_text() for path in tmp_path.iterdir()] == ["older"]


def test_the_longest_name_leaves_room_for_the_temporary_one(tmp_path: Path) -> None:
    with written_whole(tmp_path / ("x" * 255)) as temporary:
        temporary.write_text("whole")

    assert (tmp_path / ("x" * 255)).read_text() == "whole"


def test_a_model_never_writes_into_a_folder_that_was_copied(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "weights.bin").touch()
    assert folder_for(tmp_path, "net") == tmp_path / "net-2"
    (tmp_path / "net-2").mkdir()
    for name in ("net_0.pt", "net_12.pt", "net.pt", "net-2.pt", "net_layers.json"):
        (tmp_path / "net-2" / name).touch()
    assert folder_for(tmp_path, "net") == tmp_path / "net-2"
