from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from provml_lightning.storage import whole

if TYPE_CHECKING:
    from pathlib import Path


def _store(folder: Path, content: str) -> Path:
    (folder / "loss").mkdir(parents=True)
    (folder / "loss" / "0").write_text(content)
    return folder


def _read(folder: Path | None) -> str:
    assert folder is not None
    return (folder / "loss" / "0").read_text()


def test_a_folder_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    path = _store(tmp_path / "Training.zarr", "old")
    (path / "gone").touch()
    whole.take_place(_store(tmp_path / ".tmp", "new"), path)
    assert _read(path) == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["Training.zarr"]
    assert [entry.name for entry in path.iterdir()] == ["loss"]


def test_a_file_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    (tmp_path / "Training.csv").write_text("old")
    (tmp_path / ".tmp").write_text("new")
    whole.take_place(tmp_path / ".tmp", tmp_path / "Training.csv")
    assert [entry.read_text() for entry in tmp_path.iterdir()] == ["new"]


def test_between_the_two_renames_the_old_folder_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _store(tmp_path / "Training.zarr", "old")
    new = _store(tmp_path / ".tmp", "new")
    renamed = type(path).rename

    def killed_at_the_second(self: Path, target: Path) -> Path:
        if self == new:
            raise KeyboardInterrupt
        return renamed(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(type(path), "rename", killed_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            whole.take_place(new, path)
    assert not path.exists()
    assert _read(whole.standing(path)) == "old"
    assert [_read(place) for place in whole.standing_in(tmp_path, ".zarr")] == ["old"]

    whole.take_place(new, path)
    assert _read(whole.standing(path)) == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["Training.zarr"]


def test_what_a_crash_left_half_removed_is_not_looked_at(tmp_path: Path) -> None:
    path = _store(tmp_path / "Training.zarr", "new")
    (tmp_path / ".Training.zarr").mkdir()
    assert list(whole.standing_in(tmp_path, ".zarr")) == [path]
    assert whole.standing(path) == path


def test_nothing_stands_where_nothing_was(tmp_path: Path) -> None:
    assert whole.standing(tmp_path / "Training.zarr") is None
    assert list(whole.standing_in(tmp_path / "metrics", ".zarr")) == []


def test_a_file_is_measured_by_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert whole.measure(tmp_path / "x") == (
        3,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",  # FIPS 180-2, B.1
    )


def test_a_folder_is_measured_by_all_files_in_it(tmp_path: Path) -> None:
    _store(tmp_path / "s", "abc")
    (tmp_path / "s" / "a").write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    lines = f"{empty}  a\0{abc}  loss/0\0".encode()
    assert whole.measure(tmp_path / "s") == (3, hashlib.sha256(lines).hexdigest())


def test_a_folder_is_made_durable_with_all_that_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synchronised = []
    monkeypatch.setattr(whole.os, "fsync", synchronised.append)
    whole.make_durable(_store(tmp_path / "s", "abc"))
    assert len(synchronised) == 3  # s, s/loss, s/loss/0


def test_files_and_folders_are_discarded_once(tmp_path: Path) -> None:
    _store(tmp_path / "s", "abc")
    (tmp_path / "x").touch()
    for name in ("s", "x", "x"):
        whole.discard(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
