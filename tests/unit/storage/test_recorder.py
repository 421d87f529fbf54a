from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from provml_lightning.domain.records import Ended, Parameter, Series, Status, StoredFile
from provml_lightning.errors import RecordError
from provml_lightning.storage import recorder as module
from provml_lightning.storage.index import RunIndex, write_index
from provml_lightning.storage.journal import read_journal
from provml_lightning.storage.layout import RunLayout
from provml_lightning.storage.liveness import this_process
from provml_lightning.storage.recorder import Recorder

if TYPE_CHECKING:
    from pathlib import Path


class Journals:
    """Refuses every write into a journal while it is full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        write = os.write

        def guarded(file: int, content: bytes) -> int:
            if self.is_full:
                raise OSError(errno.ENOSPC, "no room")
            return write(file, content)

        monkeypatch.setattr(os, "write", guarded)


@pytest.fixture
def journals(monkeypatch: pytest.MonkeyPatch) -> Journals:
    return Journals(monkeypatch)


def _recorder(folder: Path, told: list[OSError | None] | None = None) -> Recorder:
    on_fault: Any = (lambda _: None) if told is None else told.append
    writer = this_process(0, forked=False)
    return Recorder(RunLayout(folder), writer, waiting=100, on_fault=on_fault)


def _fact(number: int) -> Parameter:
    return Parameter(time=number, key="p", value=number)


def _facts(folder: Path, stem: str = "rank-00000") -> list[Any]:
    lines = read_journal(RunLayout(folder).journal_file(stem))
    assert lines is not None
    return [record.value for record in lines.records if isinstance(record, Parameter)]


def test_facts_that_the_disk_refuses_come_later_in_order(
    tmp_path: Path, journals: Journals
) -> None:
    told: list[OSError | None] = []
    recorder = _recorder(tmp_path, told)
    recorder.append(_fact(1))
    journals.is_full = True
    recorder.append(_fact(2))
    recorder.append(_fact(3))
    assert (_facts(tmp_path), recorder.waiting) == ([1], 2)
    journals.is_full = False
    recorder.append(_fact(4))
    assert (_facts(tmp_path), recorder.waiting) == ([1, 2, 3, 4], 0)
    assert [type(error) for error in told] == [OSError, OSError, type(None)]


def test_facts_are_tried_again_though_nothing_is_logged(
    tmp_path: Path, journals: Journals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PERIOD", 0.01)
    told: list[OSError | None] = []
    recorder = _recorder(tmp_path, told)
    journals.is_full = True
    recorder.append(_fact(1))
    journals.is_full = False
    deadline = time.monotonic() + 10
    while told[-1] is not None and time.monotonic() < deadline:
        time.sleep(0.005)
    assert _facts(tmp_path) == [1]


def test_memory_is_bounded_but_names_and_ends_are_always_kept(
    tmp_path: Path, journals: Journals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_FACTS", 2)
    recorder = _recorder(tmp_path)
    journals.is_full = True
    for number in range(5):
        recorder.append(_fact(number))
    recorder.append(Series(time=1, number=1, key="loss"))
    recorder.append(Ended(time=1, status=Status.COMPLETED, final=True))
    assert (recorder.waiting, recorder.lost) == (4, 3)
    journals.is_full = False
    recorder.close()
    assert (_facts(tmp_path), recorder.lost) == ([0, 1], 3)


def test_what_still_waits_at_the_close_is_lost_and_counted(
    tmp_path: Path, journals: Journals
) -> None:
    recorder = _recorder(tmp_path)
    journals.is_full = True
    recorder.append(_fact(1))
    recorder.close()
    recorder.close()
    assert recorder.lost == 1


def test_a_fact_that_no_journal_can_hold_holds_nothing_up(tmp_path: Path) -> None:
    recorder = _recorder(tmp_path)
    stored: Any = StoredFile(path="p", size=1, sha256="0")
    with pytest.raises(RecordError):
        recorder.append(Parameter(time=1, key="p", value={1, 2}))  # type: ignore[arg-type]
    recorder.append(_fact(1))
    recorder.close()
    assert _facts(tmp_path) == [1]
    assert stored


def test_each_process_gets_a_segment_that_nobody_has_or_had(tmp_path: Path) -> None:
    layout = RunLayout(tmp_path)
    first = _recorder(tmp_path)
    assert first.writer.stem == "rank-00000"
    layout.points_file("rank-00000.2").touch()  # somebody lost the journal of this
    index = RunIndex(
        experiment="e",
        run_id="0",
        uuid="u",
        document="d",
        status=Status.COMPLETED,
        sealed=["rank-00000.3"],
    )
    write_index(layout.index, index)
    assert _recorder(tmp_path).writer.stem == "rank-00000.4"
