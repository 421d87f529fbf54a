"""The point log: a metric's values as fixed-size records in reserved, memory-mapped blocks.

A record is packed into a slot of the head block. The mark is its last field, so a record whose
writer was killed half-way has none and is skipped. Where files cannot be mapped or the disk is
full, blocks lie in memory and a thread writes them once a second.
"""

from __future__ import annotations

import errno
import itertools
import math
import mmap
import os
import struct
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

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
_MOST_WAITING = 1_000_000 // _WAITING_RECORDS
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.EROFS})
_PERIOD = 1.0

Buffer = mmap.mmap | bytearray
Head = tuple[Iterator[int], Buffer]


class PointLog:
    """The writing end, for one process and all its threads.

    ``head`` is what a caller packs into: an endless iterator of offsets and a buffer. An offset
    beyond the buffer raises ``struct.error``; then :meth:`turn` gives the next block.

    Args:
        path: The file, which must not exist.
        waiting: Values that may wait in memory where files cannot be mapped [1].
        on_fault: Called with the error when the disk fails, and with None when it works again.
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
        self._waiting_records = waiting
        self._end = 0
        self._blocks = 0
        self._memory: list[_MemoryBlock] = []
        self._fault: OSError | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.dropped = 0
        self.head: Head = self._next_head()

    def turn(self, used: Head) -> None:
        """Replace a head that is full; another thread may have done so already."""
        with self._lock:
            if self.head is used and self._file >= 0:
                self._settle()
                self.head = self._next_head()

    def flush(self) -> None:
        """Write what waits in memory, if the disk takes it."""
        with self._lock:
            self._settle()

    def sync(self) -> None:
        """Make what was logged outlive the machine.

        Raises:
            OSError: The disk did not take it.
        """
        self.flush()
        buffer = self.head[1]
        if isinstance(buffer, mmap.mmap):
            buffer.flush()
        os.fsync(self._file)

    def close(self) -> None:
        """Write what waits and let go of the file; a second call does nothing."""
        if self._file < 0:
            return
        self._stop.set()
        with self._lock:
            self._settle()
            self.dropped += self.waiting
            self._memory.clear()
            buffer, self.head = self.head[1], (itertools.repeat(RECORD.size), bytearray())
            if isinstance(buffer, mmap.mmap):
                buffer.close()
            os.close(self._file)
            self._file = -1

    def abandon(self) -> None:
        """Forget the file without writing: a forked child must not touch its parent's."""
        self._stop.set()
        self.head = (itertools.repeat(RECORD.size), bytearray())
        self._memory.clear()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    @property
    def waiting(self) -> int:
        """Values in memory that no file has yet [1]."""
        return sum(block.waiting() for block in self._memory)

    def _next_head(self) -> Head:
        if self._mapped and self._fault is None:
            try:
                return self._map_block()
            except OSError as error:
                if error.errno in _FULL:
                    self._report(error)
                else:  # the file system cannot map or reserve, and never will
                    self._mapped = False
        return self._memory_block()

    def _map_block(self) -> Head:
        size = _UNIT * min(2**self._blocks, _LARGEST)
        start = -(-self._end // _UNIT) * _UNIT
        os.posix_fallocate(self._file, start, size)
        block = mmap.mmap(self._file, size, offset=start)
        self._end = start + size
        self._blocks += 1
        return itertools.count(0, RECORD.size), block

    def _memory_block(self) -> Head:
        records = self._waiting_records if not self._mapped else _WAITING_RECORDS
        block = _MemoryBlock(bytearray(records * RECORD.size))
        self._memory.append(block)
        if len(self._memory) > _MOST_WAITING:
            self.dropped += self._memory.pop(-2).waiting()
        self._start_thread()
        return block.slots, block.buffer

    def _settle(self) -> None:
        """Move whole records from memory to the file; keep them where the disk refuses."""
        try:
            for block in list(self._memory):
                self._write(block)
                if block.is_done():
                    self._memory.remove(block)
        except OSError as error:
            self._report(error)
            return
        if self._fault is not None:
            self._fault = None
            self._on_fault(None)

    def _write(self, block: _MemoryBlock) -> None:
        stop = block.whole()
        if stop == block.written:
            return
        with memoryview(block.buffer) as view, view[block.written : stop] as content:
            if os.pwrite(self._file, content, self._end) < stop - block.written:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._end += stop - block.written
        block.written = stop

    def _report(self, error: OSError) -> None:
        if self._fault is None:
            self._fault = error
            self._on_fault(error)

    def _start_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="provml-points", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while not self._stop.wait(_PERIOD):
            with self._lock:
                if self._file < 0 or not self._memory:
                    return
                self._settle()
                if self._mapped and self._fault is None:
                    self._leave_memory()

    def _leave_memory(self) -> None:
        """Go back to mapped blocks; the last block in memory is kept for a second.

        A thread that took a slot of it may not have packed its record yet.
        """
        for block in self._memory:
            block.retired += block.buffer is not self.head[1]
        if isinstance(self.head[1], bytearray):
            try:
                self.head = self._map_block()
            except OSError as error:
                self._report(error)


class _MemoryBlock:
    """A block that no file has yet."""

    __slots__ = ("buffer", "retired", "slots", "written")

    def __init__(self, buffer: bytearray) -> None:
        self.buffer = buffer
        self.slots = itertools.count(0, RECORD.size)
        self.written = 0
        self.retired = 0

    def whole(self) -> int:
        """Return the end of the records that are packed whole, without a gap [B]."""
        end = self.written
        while self.buffer[end + RECORD.size - 4 : end + RECORD.size] == _MARK:
            end += RECORD.size
        return end

    def waiting(self) -> int:
        """Records that are packed and not written [1]."""
        return (self.whole() - self.written) // RECORD.size

    def is_done(self) -> bool:
        """Tell whether nobody packs into this block any more and all of it is written."""
        return self.written == len(self.buffer) or self.retired > 1
