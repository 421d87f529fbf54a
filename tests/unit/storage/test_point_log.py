from __future__ import annotations

import errno
import os
import struct
from typing import TYPE_CHECKING, Any

import pytest

from provml_lightning.errors import StorageError
from provml_lightning.storage import point_log
from provml_lightning.storage.point_log import ABSENT, MARK, RECORD, PointLog

if TYPE_CHECKING:
    from pathlib import Path

FIRST_BLOCK = 512  # records: the least common multiple of 40 bytes and a page of 4096 is 20 480


class FullDisk:
    """Stands between the log and the kernel, and refuses when told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        self.room = 0
        for name in ("pwrite", "posix_fallocate"):
            monkeypatch.setattr(os, name, self._guarded(getattr(os, name)))

    def _guarded(self, operation: Any) -> Any:
        def call(*arguments: Any) -> Any:
            size = arguments[2] if isinstance(arguments[1], int) else len(arguments[1])
            if self.is_full and size > self.room:
                raise OSError(errno.ENOSPC, "no room")
            return operation(*arguments)

        return call


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    monkeypatch.setattr(point_log, "_PERIOD", 3600.0)  # no thread of its own here
    return FullDisk(monkeypatch)


def _log(log: PointLog, *values: float) -> None:
    for value in values:
        while True:
            head = log.head
            offset = next(head[0])
            try:
                RECORD.pack_into(head[1], offset, 1, ABSENT, ABSENT, value, 1, MARK)
            except (struct.error, TypeError, ValueError):
                log.turn(head, offset)
            else:
                break


def _values(path: Path) -> list[float]:
    records = RECORD.iter_unpack(path.read_bytes()[: path.stat().st_size // 40 * 40])
    return [value for _, _, _, value, _, mark in records if mark == MARK]


def test_a_value_is_in_the_file_when_the_call_returns(tmp_path: Path) -> None:
    log = PointLog(tmp_path / "points")
    _log(log, 1.5)
    assert _values(tmp_path / "points") == [1.5]


def test_a_record_has_forty_bytes_in_little_endian(tmp_path: Path) -> None:
    log = PointLog(tmp_path / "points")
    RECORD.pack_into(log.head[1], 0, 7, -2, 3, 0.5, 9, MARK)
    assert (tmp_path / "points").read_bytes()[:40] == (
        (7).to_bytes(8, "little")
        + (-2).to_bytes(8, "little", signed=True)
        + (3).to_bytes(8, "little")
        + bytes.fromhex("000000000000e03f")
        + (9).to_bytes(4, "little")
        + b"PROV"
    )


def test_blocks_follow_each_other_and_grow(tmp_path: Path) -> None:
    log = PointLog(tmp_path / "points")
    _log(log, *map(float, range(FIRST_BLOCK)))
    assert (tmp_path / "points").stat().st_size == 20_480
    _log(log, float(FIRST_BLOCK))
    assert (tmp_path / "points").stat().st_size == 3 * 20_480
    assert _values(tmp_path / "points") == list(map(float, range(FIRST_BLOCK + 1)))


def test_a_file_that_exists_is_never_taken(tmp_path: Path) -> None:
    PointLog(tmp_path / "points").close()
    with pytest.raises(FileExistsError):
        PointLog(tmp_path / "points")


def test_a_record_that_fits_nowhere_is_told_from_a_block_that_is_full(tmp_path: Path) -> None:
    log = PointLog(tmp_path / "points")
    head = log.head
    assert not log.turn(head, 0)
    assert log.head is head
    assert log.turn(head, 20_480)
    assert log.head is not head
    assert log.turn(head, 0), "another thread had replaced it"


def test_a_closed_log_takes_nothing_in_any_block_it_ever_gave(tmp_path: Path) -> None:
    log = PointLog(tmp_path / "points")
    first = log.head
    _log(log, *[0.0] * (FIRST_BLOCK + 1))
    second = log.head
    log.close()
    for head in (first, second, log.head):
        with pytest.raises((struct.error, TypeError, ValueError)):
            RECORD.pack_into(head[1], 0, 0, 0, 0, 0.0, 1, MARK)
    log.close()
    log.flush()
    log.sync()


def test_values_wait_while_the_disk_is_full_and_keep_their_order(
    tmp_path: Path, disk: FullDisk
) -> None:
    told: list[OSError | None] = []
    log = PointLog(tmp_path / "points", on_fault=told.append)
    disk.is_full = True
    _log(log, *map(float, range(5000)))
    assert log.waiting == 5000 - FIRST_BLOCK
    disk.is_full = False
    _log(log, *map(float, range(5000, 9000)))
    log.close()
    assert _values(tmp_path / "points") == list(map(float, range(9000)))
    assert log.dropped == 0
    assert [error and error.errno for error in (told[0], told[-1])] == [errno.ENOSPC, None]
    assert told.count(None) == 1


def test_a_small_block_is_taken_where_a_large_one_has_no_room(
    tmp_path: Path, disk: FullDisk
) -> None:
    told: list[OSError | None] = []
    log = PointLog(tmp_path / "points", on_fault=told.append)
    disk.is_full, disk.room = True, 20_480
    _log(log, *[0.0] * (FIRST_BLOCK * 3))
    assert log.waiting == 0
    assert not told


def test_a_slot_that_nobody_filled_holds_up_no_other(tmp_path: Path, disk: FullDisk) -> None:
    log = PointLog(tmp_path / "points", waiting=10, mapped=False)
    _log(log, 1.0)
    head = log.head
    late = next(head[0])  # a thread that was interrupted, for ever or for a while
    _log(log, 3.0, 4.0)
    log.flush()
    assert _values(tmp_path / "points") == [1.0, 3.0, 4.0]
    RECORD.pack_into(head[1], late, 1, ABSENT, ABSENT, 2.0, 1, MARK)
    log.flush()
    assert _values(tmp_path / "points") == [1.0, 2.0, 3.0, 4.0]
    assert disk.is_full is False


def test_values_are_bounded_in_memory_and_what_is_lost_is_counted(
    tmp_path: Path, disk: FullDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(point_log, "_MOST_WAITING", 5 * 1024)
    log = PointLog(tmp_path / "points")
    disk.is_full = True
    _log(log, *[0.0] * (FIRST_BLOCK + 10 * 1024))
    assert log.waiting + log.dropped == 10 * 1024
    assert log.waiting <= 5 * 1024
    log.close()
    assert log.dropped == 10 * 1024


@pytest.mark.parametrize("waiting", [1, 100, 10**9])
def test_without_mapping_a_full_buffer_is_written_at_once(
    waiting: int, tmp_path: Path, disk: FullDisk
) -> None:
    log = PointLog(tmp_path / "points", waiting=waiting, mapped=False)
    _log(log, *map(float, range(3000)))
    assert log.waiting <= min(waiting, 1024)
    log.close()
    assert _values(tmp_path / "points") == list(map(float, range(3000)))
    assert disk.is_full is False


def test_a_fault_that_the_owner_makes_an_error_leaves_no_file_open(
    tmp_path: Path, disk: FullDisk
) -> None:
    def refuse(error: OSError | None) -> None:
        raise StorageError(str(error))

    disk.is_full = True
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0  # noqa: PTH112, PTH208
    with pytest.raises(StorageError, match="no room"):
        PointLog(tmp_path / "points", on_fault=refuse)
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0  # noqa: PTH112, PTH208
    assert after == before


def test_an_abandoned_log_writes_nothing_more(tmp_path: Path, disk: FullDisk) -> None:
    log = PointLog(tmp_path / "points", waiting=10, mapped=False)
    _log(log, 1.0)
    log.abandon()
    log.close()
    assert _values(tmp_path / "points") == []
    assert disk.is_full is False
