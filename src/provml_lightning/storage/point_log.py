"""The point log: a metric's values as fixed-size records in reserved, memory-mapped blocks.

A record is packed into a slot of the head block. The mark is its last field, so a record whose
writer was killed half-way has none and is skipped. Where files cannot be mapped or the disk is
full, blocks lie in memory and a thread writes them once a second.

Every block, mapped or in memory, has its own place in the file from the start. So the order of the
values is the order of the slots, and a slot that nobody filled is a hole and no obstacle.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import math
import mmap
import os
import struct
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from provml_lightning.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ABSENT", "MARK", "RECORD", "PointLog"]

# time [ns], step, epoch, value, number of the series, mark
RECORD = struct.Struct("<qqqdII")
MARK = 0x564F5250
ABSENT = -(2**63)

_MARK = MARK.to_bytes(4, "little")
_UNIT = math.lcm(RECORD.size, mmap.ALLOCATIONGRANULARITY)
_LARGEST = 256
_WAITING_RECORDS = 1024
_MOST_WAITING = 1_000_000
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ESTALE, errno.EROFS})
_PERIOD = 1.0
_LATEST = 3

Buffer = mmap.mmap | bytearray
Head = tuple[Iterator[int], Buffer]


class PointLog:
    """The writing end, for one process and all its threads.

    ``head`` is what a caller packs into: an endless iterator of offsets and a buffer. An offset
    beyond the buffer raises ``struct.error``; then :meth:`turn` gives the next block.

    Args:
        path: The file, which must not exist.
        waiting: Values that may wait in memory where files cannot be mapped [1].
        on_fault: Called with the error each time the disk fails, and with None when it works again.
        mapped: False to do without mapping from the start.
    """

    def __init__(
        self,
        path: Path,
        *,
        waiting: int = 100,
        on_fault: Callable[[OSError | None], None] = lambda _: None,
        mapped: bool = True,
    ) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        self._file = os.open(path, flags, 0o666)
        self._lock = threading.Lock()
        self._on_fault = on_fault
        self._mapped = mapped and hasattr(os, "posix_fallocate")
        self._waiting_records = min(waiting, _WAITING_RECORDS)
        self._end = 0
        self._blocks = 0
        self._maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
        self._memory: list[_MemoryBlock] = []
        self._failing = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.dropped = 0
        self.head: Head = _dead_head()
        try:
            self.head = self._next_head()
        except StorageError:
            os.close(self._file)
            raise

    def turn(self, used: Head, offset: int) -> bool:
        """Replace a head that is full; another thread may have done so already.

        Returns:
            False where the head has room at ``offset``: it is the record that fits nowhere.
        """
        with self._lock:
            if self.head is used and self._file >= 0:
                if offset + RECORD.size <= len(used[1]):
                    return False
                self.head = self._next_head()
            return True

    def flush(self) -> None:
        """Write what waits in memory, if the disk takes it."""
        with self._lock:
            self._settle()

    def sync(self) -> None:
        """Make what was logged outlive the machine.

        Raises:
            OSError: The disk did not take it.
        """
        with self._lock:
            self._settle()
            if self._file < 0:
                return
            buffer, file = self.head[1], os.dup(self._file)
        try:
            if isinstance(buffer, mmap.mmap):
                with contextlib.suppress(ValueError):  # closed by another thread meanwhile
                    buffer.flush()
            os.fsync(file)
        finally:
            os.close(file)

    def close(self) -> None:
        """Write what waits and let go of the file; a second call does nothing."""
        self._stop.set()
        with self._lock:
            if self._file < 0:
                return
            self.head = _dead_head()
            try:
                if self._settle():
                    self._end_fault()
            finally:
                self.dropped += self.waiting
                # A thread that still has a slot, of whatever block, is told and not ignored.
                for block in self._memory:
                    block.buffer.clear()
                self._memory.clear()
                for mapped in list(self._maps):
                    mapped.close()
                os.close(self._file)
                self._file = -1

    def abandon(self) -> None:
        """Forget the file without writing: a forked child must not touch its parent's."""
        self._stop.set()
        self.head = _dead_head()
        self._memory.clear()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    @property
    def waiting(self) -> int:
        """Values in memory that no file has yet [1]."""
        return sum(len(block.unwritten()) for block in self._memory)

    def _next_head(self) -> Head:
        if self._settle() and self._mapped:
            try:
                return self._map_block()
            except OSError as error:
                if error.errno in _FULL:
                    self._report(error)
                else:  # the file system cannot map or reserve, and never will
                    self._mapped = False
        return self._memory_block()

    def _map_block(self) -> Head:
        start = -(-self._end // _UNIT) * _UNIT
        size = _UNIT * min(2**self._blocks, _LARGEST)
        try:
            os.posix_fallocate(self._file, start, size)
        except OSError as error:
            if error.errno not in _FULL or size == _UNIT:
                raise
            size = _UNIT  # what is left of the disk may be enough for a small one
            os.posix_fallocate(self._file, start, size)
        block = mmap.mmap(self._file, size, offset=start)
        self._maps.add(block)
        self._end = start + size
        self._blocks += 1
        self._end_fault()
        return itertools.count(0, RECORD.size), block

    def _memory_block(self) -> Head:
        own = not self._failing and not self._mapped
        block = _MemoryBlock(self._waiting_records if own else _WAITING_RECORDS, self._end)
        self._end += len(block.buffer)
        self._memory.append(block)
        if sum(len(each.buffer) for each in self._memory) > _MOST_WAITING * RECORD.size:
            self.dropped += len(self._memory.pop(-2).unwritten())
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="provml-points", daemon=True)
            self._thread.start()
        return block.slots, block.buffer

    def _settle(self) -> bool:
        """Write what waits in memory and keep what the disk refuses; tell whether it took all."""
        try:
            for block in list(self._memory):
                self._write(block)
                if block.is_done():
                    self._memory.remove(block)
        except OSError as error:
            self._report(error)
            return False
        if not self._mapped:  # else the fault is over when a block can be reserved again
            self._end_fault()
        return True

    def _write(self, block: _MemoryBlock) -> None:
        offsets = block.unwritten()
        if not offsets:
            return
        start, stop = offsets[0], offsets[-1] + RECORD.size
        content = bytes(block.buffer[start:stop])
        if os.pwrite(self._file, content, block.place + start) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        block.written.update(offsets)

    def _report(self, error: OSError) -> None:
        self._failing = True
        self._on_fault(error)

    def _end_fault(self) -> None:
        if self._failing:
            self._failing = False
            self._on_fault(None)

    def _work(self) -> None:
        while not self._stop.wait(_PERIOD):
            with self._lock:
                if self._file < 0 or not self._memory:
                    self._thread = None
                    return
                for block in self._memory:
                    block.retired += block.buffer is not self.head[1]
                # A strict run raises where something is logged, not here.
                with contextlib.suppress(StorageError):
                    self._leave_memory()

    def _leave_memory(self) -> None:
        """Write what waits; go back to mapped blocks where there are any."""
        if self._settle() and self._mapped and isinstance(self.head[1], bytearray):
            try:
                self.head = self._map_block()
            except OSError as error:
                self._report(error)


class _MemoryBlock:
    """A block that the file has not whole yet, and its place there [B]."""

    __slots__ = ("buffer", "place", "retired", "slots", "written")

    def __init__(self, records: int, place: int) -> None:
        self.buffer = bytearray(records * RECORD.size)
        self.place = place
        self.slots = itertools.count(0, RECORD.size)
        self.written: set[int] = set()
        self.retired = 0

    def unwritten(self) -> list[int]:
        """Return the offsets of the records that are packed whole and that no file has [B]."""
        buffer, size = self.buffer, RECORD.size
        return [
            offset
            for offset in range(0, len(buffer), size)
            if offset not in self.written and buffer[offset + size - 4 : offset + size] == _MARK
        ]

    def is_done(self) -> bool:
        """Tell whether nobody packs into this block any more; what is packed has been written.

        A thread that took a slot may pack its record a little after the block was replaced.
        """
        return len(self.written) * RECORD.size == len(self.buffer) or self.retired >= _LATEST


def _dead_head() -> Head:
    """Return a head that takes nothing."""
    return itertools.repeat(RECORD.size), bytearray()
