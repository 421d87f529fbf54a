from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
import tracemalloc
from pathlib import Path

import pytest

from provml_lightning.capture.artifacts import copy_into, describe_file, free_name
from provml_lightning.domain.records import StoredFile
from provml_lightning.errors import RecordDroppedWarning, RecordError, StorageError

# FIPS 180-2, appendix B.1, and the empty message
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    (made / "sub").mkdir(parents=True)
    (made / "a.txt").write_bytes(b"abc")
    (made / "sub" / "empty").write_bytes(b"")
    return made


def test_a_file_is_described_by_its_size_digest_and_type(folder: Path) -> None:
    assert describe_file(folder / "a.txt", shown_as="artifacts/a.txt") == StoredFile(
        path="artifacts/a.txt", size=3, sha256=ABC, media_type="text/plain", files=1
    )


def test_a_folder_is_described_by_the_list_of_its_files(folder: Path) -> None:
    lines = f"{ABC}  a.txt\0{EMPTY}  sub/empty\0"

    assert describe_file(folder, shown_as="data") == StoredFile(
        path="data",
        size=3,
        sha256=hashlib.sha256(lines.encode()).hexdigest(),
        media_type="inode/directory",
        files=2,
    )


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs GNU coreutils")
def test_the_digest_of_a_folder_is_what_the_documented_command_prints(folder: Path) -> None:
    for name in ("ä b", "new\nline", "B", "sub/Z", "sub-1", "sub.x"):
        (folder / name).write_text(name)
    command = (
        r"find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum -z | sha256sum"
    )
    printed = subprocess.run(
        ["bash", "-c", command],  # noqa: S607
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    assert describe_file(folder, shown_as="x").sha256 == printed.split()[0]


def test_a_changed_name_or_byte_changes_the_digest_of_a_folder(folder: Path) -> None:
    before = describe_file(folder, shown_as="x").sha256
    (folder / "a.txt").rename(folder / "b.txt")
    renamed = describe_file(folder, shown_as="x").sha256
    (folder / "b.txt").write_bytes(b"abd")

    assert len({before, renamed, describe_file(folder, shown_as="x").sha256}) == 3


def test_an_empty_folder_has_the_digest_of_nothing(tmp_path: Path) -> None:
    found = describe_file(tmp_path, shown_as="x")

    assert (found.sha256, found.size, found.files) == (EMPTY, 0, 0)


@pytest.mark.parametrize("name", ["missing", "a.txt/below", "nul\0"])
def test_a_path_where_nothing_is_is_refused_by_name(folder: Path, name: str) -> None:
    with pytest.raises(RecordError, match="no such file or folder"):
        describe_file(folder / name, shown_as="x")
    with pytest.raises(RecordError, match="no such file or folder"):
        copy_into(folder / name, folder.parent / "copy")
    assert not (folder.parent / "copy").exists()


def test_a_pipe_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(RecordError, match="pipe, socket or device"):
        describe_file(tmp_path / "pipe", shown_as="x")


def test_pipes_and_sockets_in_a_folder_do_not_count(folder: Path) -> None:
    before = describe_file(folder, shown_as="x")
    os.mkfifo(folder / "pipe")
    # A path of at most 107 bytes: that of a socket is short.
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as made:
        made.bind(f"{short}/s")
        Path(short, "s").rename(folder / "socket")

    assert describe_file(folder, shown_as="x") == before
    copy_into(folder, folder.parent / "copy")
    assert describe_file(folder.parent / "copy", shown_as="x") == before


def test_a_file_that_cannot_be_read_is_named_with_what_to_check(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)  # as root, permissions stop nobody

    with pytest.raises(StorageError, match=r"data/a\.txt: cannot read it .*permissions"):
        describe_file(folder, shown_as="x")
    with pytest.raises(StorageError, match=r"data/a\.txt: cannot copy it"):
        copy_into(folder, folder.parent / "copy")
    assert [path.name for path in folder.parent.iterdir()] == ["data"]


def test_links_that_stay_inside_are_relative_links_in_the_copy(folder: Path) -> None:
    (folder / "sub" / "up").symlink_to("../a.txt")
    (folder / "absolute").symlink_to(folder / "a.txt")
    (folder / "by name").symlink_to("../data/sub")
    (folder / "dangling").symlink_to("nothing")
    copy = folder.parent / "elsewhere" / "copy"

    copy_into(folder, copy)

    links = {path.name: os.readlink(path) for path in copy.rglob("*") if path.is_symlink()}  # noqa: PTH115
    assert links == {
        "up": "../a.txt",
        "absolute": "a.txt",
        "by name": "sub",
        "dangling": "nothing",
    }
    assert (copy / "absolute").read_bytes() == b"abc"
    assert describe_file(copy, shown_as="x") == describe_file(folder, shown_as="x")


def test_links_that_lead_outside_are_never_followed(folder: Path) -> None:
    secret = folder.parent / "secret"
    secret.mkdir()
    (secret / "key").write_text("do not copy")
    (folder / "file").symlink_to(secret / "key")
    (folder / "folder").symlink_to("../secret")
    (folder / "chain").symlink_to("file")
    copy = folder.parent / "copy"

    with pytest.warns(RecordDroppedWarning, match="3 links lead out of the folder"):
        copy_into(folder, copy)

    assert not any(path.is_symlink() for path in copy.rglob("*"))
    assert (copy / "file").read_text() == str(secret / "key")
    assert (copy / "folder").read_text() == "../secret"
    assert (copy / "chain").read_text() == "file"
    assert describe_file(copy, shown_as="x") == describe_file(folder, shown_as="x")
    assert describe_file(copy, shown_as="x").files == 5


def test_loops_of_links_end(folder: Path) -> None:
    (folder / "self").symlink_to("self")
    (folder / "sub" / "parent").symlink_to("..")
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    copy = folder.parent / "copy"

    copy_into(folder, copy)

    assert (copy / "sub" / "parent").resolve() == copy.resolve()
    assert describe_file(copy, shown_as="x") == describe_file(folder, shown_as="x")
    assert describe_file(copy, shown_as="x").files == 6


def test_a_link_that_is_given_is_followed(folder: Path) -> None:
    link = folder.parent / "link"
    link.symlink_to(folder)
    (folder / "absolute").symlink_to(link / "a.txt")

    copy_into(link, folder.parent / "copy")

    assert (folder.parent / "copy" / "absolute").read_bytes() == b"abc"
    assert describe_file(link, shown_as="x") == describe_file(folder, shown_as="x")


def test_a_loop_that_is_given_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")

    with pytest.raises(StorageError, match="loop"):
        describe_file(tmp_path / "loop", shown_as="x")


def test_a_folder_that_contains_the_destination_is_copied_without_it(folder: Path) -> None:
    for _ in range(2):
        copy = free_name(folder / "prov" / "run" / "artifacts", "all", is_folder=True)
        copy_into(folder, copy, without=folder / "prov" / "run")
        names = sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*"))
        assert names == ["a.txt", "sub", "sub/empty"]
        described = describe_file(folder, shown_as="x", without=folder / "prov" / "run")
        assert described == describe_file(copy, shown_as="x")


def test_a_copy_into_its_own_source_does_not_contain_itself(folder: Path) -> None:
    copy_into(folder, folder / "copies" / "one")

    assert (folder / "copies" / "one" / "a.txt").read_bytes() == b"abc"
    assert not (folder / "copies" / "one" / "copies").exists()


def test_a_folder_inside_the_run_that_is_left_out_is_copied_when_it_is_given(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "checkpoints" / "a.ckpt").write_bytes(b"abc")

    copy_into(run / "checkpoints", run / "artifacts" / "checkpoints", without=run)

    assert (run / "artifacts" / "checkpoints" / "a.ckpt").read_bytes() == b"abc"


def test_a_copy_replaces_its_reservation_but_nothing_else(folder: Path) -> None:
    for source in (folder, folder / "a.txt"):
        for is_folder in (True, False):
            path = free_name(folder.parent / "artifacts", "copy", is_folder=is_folder)
            copy_into(source, path)
            copied, original = (describe_file(of, shown_as="x") for of in (path, source))
            assert copied.sha256 == original.sha256
            with pytest.raises(StorageError, match="is taken"):
                copy_into(source, path)


def test_a_planted_link_at_the_destination_is_not_followed(folder: Path) -> None:
    (folder.parent / "target").write_bytes(b"")
    (folder.parent / "planted").symlink_to("target")

    with pytest.raises(StorageError, match="is taken"):
        copy_into(folder / "a.txt", folder.parent / "planted")
    assert (folder.parent / "target").read_bytes() == b""


def test_a_copy_that_fails_half_way_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "copy_file_range", fail, raising=False)
    monkeypatch.setattr(shutil, "copyfileobj", fail)
    path = free_name(folder.parent / "artifacts", "copy", is_folder=True)

    with pytest.raises(StorageError, match="No space left on device"):
        copy_into(folder, path)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("moved", [0, 3])
def test_where_the_file_system_stops_copying_the_plain_loop_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    (tmp_path / "source").write_bytes(b"0123456789")

    def some(source: int, target: int, _: int) -> int:
        os.write(target, os.read(source, moved))
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "copy_file_range", some, raising=False)
    copy_into(tmp_path / "source", tmp_path / "copy")

    assert (tmp_path / "copy").read_bytes() == b"0123456789"


def test_a_copy_has_the_permissions_of_the_user_not_of_the_original(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"abc")
    (tmp_path / "source").chmod(0o6400)
    before = os.umask(0o027)
    try:
        copy_into(tmp_path / "source", tmp_path / "copy")
    finally:
        os.umask(before)

    assert (tmp_path / "copy").stat().st_mode & 0o7777 == 0o640


def test_a_name_of_any_bytes_is_copied_and_counted(tmp_path: Path) -> None:
    odd = tmp_path / "odd"
    odd.mkdir()
    for name in (b"caf\xe9", "π".encode(), b"-rf", b" ", b"a\nb", b'"', b"*"):
        Path(os.fsdecode(os.fsencode(odd) + b"/" + name)).write_bytes(name)

    copy_into(odd, tmp_path / "copy")

    assert describe_file(tmp_path / "copy", shown_as="x") == describe_file(odd, shown_as="x")
    assert describe_file(odd, shown_as="x").files == 7


@pytest.mark.slow
def test_a_large_file_is_read_and_copied_in_constant_memory(tmp_path: Path) -> None:
    large = tmp_path / "large.ckpt"
    with large.open("wb") as file:
        file.truncate(1 << 30)

    tracemalloc.start()
    try:
        described = describe_file(large, shown_as="x")
        copy_into(large, tmp_path / "copy.ckpt")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert described.size == 1 << 30
    assert (tmp_path / "copy.ckpt").stat().st_size == 1 << 30
    assert most < 8 << 20
