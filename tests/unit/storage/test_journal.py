from __future__ import annotations

import dataclasses
import errno
import json
import math
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provml_lightning.domain.reading import Writer
from provml_lightning.domain.records import Artifact, Dataset, Opened, Parameter, StoredFile
from provml_lightning.errors import RecordError, StorageError
from provml_lightning.storage.journal import Journal, encoded, read_journal

if TYPE_CHECKING:
    from pathlib import Path

WRITER = Writer(rank=0, segment=1, host="node", pid=7, process_start=3, time=1, place="boot/1")


def _read(path: Path) -> list[Any]:
    lines = read_journal(path)
    assert lines is not None
    assert lines.writer == WRITER
    return list(lines.records)


def _parameter(value: Any, key: str = "p") -> Parameter:
    return Parameter(time=1, key=key, value=value)


def test_the_first_line_says_who_writes_and_in_which_version(tmp_path: Path) -> None:
    Journal(tmp_path / "j", WRITER).close()
    first = json.loads((tmp_path / "j").read_text())
    assert (first["kind"], first["format"], first["host"]) == ("Writer", 1, "node")


@pytest.mark.parametrize(
    "value",
    [True, 3, 2**62, -0.5, math.inf, -math.inf, "text\nof two lines", "\ud800", "ü\0", "",
     datetime(2024, 1, 1, 12, 30, tzinfo=UTC)],
)  # fmt: skip
def test_a_value_comes_back_as_it_was(value: Any, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", WRITER)
    journal.write(encoded(_parameter(value)))
    (found,) = _read(tmp_path / "j")
    assert (found.value, type(found.value)) == (value, type(value))


@pytest.mark.parametrize("value", [math.nan, np.float64("nan"), np.float64("inf")])
def test_numbers_that_json_does_not_know_come_back(value: float, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", WRITER)
    journal.write(encoded(_parameter(value)))
    (found,) = _read(tmp_path / "j")
    assert repr(float(found.value)) == repr(float(value))


@pytest.mark.parametrize("key", ["$float", "$time", "$$float", "$", "plain"])
def test_a_key_of_the_users_is_not_taken_for_a_mark_of_ours(key: str, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", WRITER)
    record = Dataset(time=1, label="d", attributes={key: "not a number"})
    journal.write(encoded(record))
    assert _read(tmp_path / "j") == [record]


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.floats(allow_nan=False)))
def test_any_attributes_come_back(attributes: dict[str, Any]) -> None:
    record = Dataset(time=1, label="d", attributes=attributes)
    line = encoded(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    line.decode("ascii")


def test_files_and_nested_records_come_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", WRITER)
    stored = StoredFile(path="artifacts/a", size=3, sha256="00")
    record = Artifact(time=1, name="a", stored=stored, attributes={"x": math.inf})
    journal.write(encoded(record))
    assert _read(tmp_path / "j") == [record]


def test_a_record_that_cannot_be_written_is_refused_before_it_holds_others_up() -> None:
    with pytest.raises(RecordError, match="parameter: value must be"):
        encoded(_parameter(object()))


@pytest.mark.parametrize("source", [5, ["library"], b"library", {"a": 1}])
def test_a_source_that_is_no_text_is_refused_by_name(source: Any) -> None:
    with pytest.raises(RecordError, match="parameter: source must be text"):
        encoded(Parameter(time=1, key="p", value=1, source=source))


@pytest.mark.parametrize(
    "damaged",
    [
        {"kind": "Parameter", "time": 1, "key": "p", "value": [1]},
        {"kind": "Parameter", "time": "now", "key": "p", "value": 1},
        {"kind": "Parameter", "time": 2**63, "key": "p", "value": 1},
        {"kind": "Parameter", "time": 1, "key": "p", "value": {"$time": "2020-99-99"}},
        {"kind": "Artifact", "time": 1, "name": {}},
        {"kind": "Artifact", "time": 1, "name": "a", "attributes": [1]},
        {"kind": "Ended", "time": 1, "status": "happy"},
        {"kind": ["Parameter"]},
    ],
)
def test_a_line_whose_values_are_of_wrong_types_costs_itself_alone(
    damaged: dict[str, Any], tmp_path: Path
) -> None:
    journal = Journal(tmp_path / "j", WRITER)
    journal.write(json.dumps(damaged).encode() + b"\n")
    journal.write(encoded(_parameter(1)))
    lines = read_journal(tmp_path / "j")
    assert lines is not None
    assert (lines.records, lines.torn) == ((_parameter(1),), 1)


@pytest.mark.parametrize("damage", [{"rank": "../../x"}, {"segment": None}, {"format": "new"}])
def test_a_first_line_that_is_damaged_is_none_or_read_without_its_version(
    damage: dict[str, Any], tmp_path: Path
) -> None:
    line = {"kind": "Writer", **dataclasses.asdict(WRITER), **damage}
    (tmp_path / "j").write_text(json.dumps(line) + "\n")
    lines = read_journal(tmp_path / "j")
    assert (lines is None) == ("format" not in damage)


@pytest.mark.parametrize("torn", [b'{"kind":"Para', b"\xff\xfe\n", b"[1]\n", b"null\n"])
def test_a_line_that_is_torn_or_no_fact_costs_itself_alone(torn: bytes, tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = Journal(path, WRITER)
    journal.write(encoded(_parameter(1)))
    with path.open("ab") as file:
        file.write(torn.rstrip(b"\n") + b"\n")
    journal.write(encoded(_parameter(2)))
    lines = read_journal(path)
    assert lines is not None
    assert [record.value for record in lines.records] == [1, 2]  # type: ignore[union-attr]
    assert lines.torn == 1


def test_what_stands_behind_the_last_line_break_is_no_line_yet(tmp_path: Path) -> None:
    path = tmp_path / "j"
    Journal(path, WRITER).write(encoded(_parameter(1)))
    whole = path.read_bytes()
    for length in range(len(whole) - 1, whole.index(b"\n"), -1):
        path.write_bytes(whole[:length])
        lines = read_journal(path)
        assert lines is not None
        assert (lines.records, lines.torn) == ((), 0)


def test_a_line_that_the_disk_cut_is_taken_back_and_comes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j"
    journal = Journal(path, WRITER)
    line = encoded(_parameter(1))
    write = os.write
    for cut in range(1, len(line)):
        monkeypatch.setattr(os, "write", lambda file, text, cut=cut: write(file, text[:cut]))
        with pytest.raises(OSError, match="space") as raised:
            journal.write(line)
        assert raised.value.errno == errno.ENOSPC
    monkeypatch.setattr(os, "write", write)
    journal.write(line)
    lines = read_journal(path)
    assert lines is not None
    assert len(lines.records) == 1
    assert lines.torn == 0


def test_a_cut_line_that_cannot_be_taken_back_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j"
    journal = Journal(path, WRITER)
    line = encoded(_parameter(1))
    write = os.write

    def refuse(*_: Any) -> None:
        raise OSError(errno.EPERM, "append only")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda file, text: write(file, text[:9]))
        patched.setattr(os, "ftruncate", refuse)
        with pytest.raises(OSError, match="space"):
            journal.write(line)
    journal.write(line)
    lines = read_journal(path)
    assert lines is not None
    assert (len(lines.records), lines.torn) == (1, 1)


@pytest.mark.parametrize("content", [b"", b'{"kind":"Writer","form', b"nonsense\n"])
def test_a_journal_without_its_first_line_is_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "j").write_bytes(content)
    assert read_journal(tmp_path / "j") is None


def test_a_later_version_is_refused_and_later_fields_are_passed_over(tmp_path: Path) -> None:
    fields = {"kind": "Writer", "format": 1, "later": 1, **dataclasses.asdict(WRITER)}
    (tmp_path / "j").write_text(json.dumps(fields) + "\n")
    assert _read(tmp_path / "j") == []
    (tmp_path / "j").write_text(json.dumps(fields | {"format": 2}) + "\n")
    with pytest.raises(StorageError, match="later version"):
        read_journal(tmp_path / "j")


def test_a_kind_of_a_later_version_is_passed_over_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = Journal(path, WRITER)
    journal.write(b'{"kind":"Later","time":1}\n')
    opened = Opened(time=1, experiment="e", run_id="0", uuid="u", user="me")
    journal.write(encoded(opened))
    lines = read_journal(path)
    assert lines is not None
    assert (lines.records, lines.torn) == ((opened,), 1)
