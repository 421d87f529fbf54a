from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from provml_lightning.capture.payloads import write_value
from provml_lightning.errors import RecordError, StorageError


class Opaque:
    def __repr__(self) -> str:
        return "<Opaque>"


@pytest.mark.parametrize(
    ("value", "name", "content"),
    [
        ("grün\r\n", "v.txt", "grün\r\n".encode()),
        ("\ud800", "v.txt", b"\xed\xa0\x80"),
        (b"\x00\xff", "v.bin", b"\x00\xff"),
        (bytearray(b"ab"), "v.bin", b"ab"),
        (memoryview(b"ab"), "v.bin", b"ab"),
        (3, "v.json", b"3"),
        (True, "v.json", b"true"),
        (None, "v.json", b"null"),
        ([], "v.json", b"[]"),
        (Opaque(), "v.txt", b"<Opaque>"),
        ({1}, "v.txt", b"{1}"),
    ],
)
def test_plain_values_are_written_as_they_are(
    tmp_path: Path, value: Any, name: str, content: bytes
) -> None:
    path = write_value(value, tmp_path, "v")

    assert path == tmp_path / name
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_containers_are_json_also_with_members_that_json_does_not_know(tmp_path: Path) -> None:
    value = {
        "lr": 0.1,
        "path": Path("a/b"),
        "when": datetime(2026, 1, 2, tzinfo=UTC),
        "nested": MappingProxyType({"ü": (1, None)}),
        "bad": [float("nan"), float("-inf")],
        3: Opaque(),
    }

    written = write_value(value, tmp_path, "config.json")

    assert written.name == "config.json"
    assert json.loads(written.read_text("utf-8"), parse_constant=pytest.fail) == {
        "lr": 0.1,
        "path": "a/b",
        "when": "2026-01-02T00:00:00+00:00",
        "nested": {"ü": [1, None]},
        "bad": ["NaN", "-Infinity"],
        "3": "<Opaque>",
    }


def test_what_json_cannot_hold_is_kept_as_its_text(tmp_path: Path) -> None:
    looped: list[Any] = [1]
    looped.append(looped)

    assert write_value(looped, tmp_path, "loop").read_text() == "[1, [...]]"
    assert write_value({(1, 2): 3}, tmp_path, "keys").read_text() == "{(1, 2): 3}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["keys.txt", "loop.txt"]


def test_a_very_long_text_of_an_object_is_bounded(tmp_path: Path) -> None:
    path = write_value({*range(100_000)}, tmp_path, "numbers")

    assert path.suffix == ".txt"
    assert path.stat().st_size < 9000


def test_the_same_name_twice_is_two_files(tmp_path: Path) -> None:
    write_value("one", tmp_path, "note")

    assert write_value("two", tmp_path, "note").name == "note-2.txt"
    assert (tmp_path / "note.txt").read_text() == "one"


def test_a_folder_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StorageError, match="free space"):
        write_value("text", tmp_path / "file", "name")
    with pytest.raises(RecordError, match="cannot be the name of a file"):
        write_value("text", tmp_path, "../name")
