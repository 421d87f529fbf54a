"""Files are read beside the training, in a process that was forked meanwhile too."""

from __future__ import annotations

import hashlib
import multiprocessing
import threading
from typing import TYPE_CHECKING, Any

from provml_lightning.loggers.lineage.places import Place, mark_of
from provml_lightning.loggers.lineage.reading import Reader

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_forked_process_reads_though_a_thread_that_it_lacks_held_the_lock(
    tmp_path: Path,
) -> None:
    file = tmp_path / "x.ckpt"
    file.write_bytes(b"weights")
    place = Place(str(file), "x.ckpt", is_inside=True)
    mark = mark_of(place)
    assert mark is not None
    reader = Reader()
    forking = multiprocessing.get_context("fork")
    answers: Any = forking.SimpleQueue()

    def read() -> None:
        reader.read(place, mark)
        answers.put([file.sha256 for file, _ in reader.finished(10.0)])

    with HeldElsewhere(reader._lock):  # noqa: SLF001  as if it were reading just now
        child = forking.Process(target=read)
        child.start()
        child.join(20)
        was_alive = child.is_alive()
        child.kill()
    assert not was_alive
    assert answers.get() == [hashlib.sha256(b"weights").hexdigest()]


def test_a_file_that_cannot_be_read_for_want_of_memory_does_not_end_the_reading_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.ckpt"
    file.write_bytes(b"weights")
    place = Place(str(file), "x.ckpt", is_inside=True)
    mark = mark_of(place)
    assert mark is not None

    def fail(*_: Any, **__: Any) -> Any:
        raise MemoryError

    reader = Reader()
    with monkeypatch.context() as patch:
        patch.setattr("provml_lightning.loggers.lineage.reading.describe_file", fail)
        reader.read(place, mark)
        assert reader.finished(10.0) == []
    assert reader.is_idle()
    reader.read(place, mark)
    assert [file.sha256 for file, _ in reader.finished(10.0)] == [
        hashlib.sha256(b"weights").hexdigest()
    ]


class HeldElsewhere:
    """Has a thread hold a lock."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.is_held, self.may_go = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._hold)

    def _hold(self) -> None:
        with self.lock:
            self.is_held.set()
            self.may_go.wait()

    def __enter__(self) -> None:
        self.thread.start()
        self.is_held.wait()

    def __exit__(self, *_: object) -> None:
        self.may_go.set()
        self.thread.join()
