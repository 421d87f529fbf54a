"""The values of a run: numbered, packed and safe from the process's death within a microsecond."""

from __future__ import annotations

import struct
import threading
import time as clock
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.scalars import to_step, to_value
from provml_lightning.errors import ProvMLError, RecordError, RunClosedError, StorageError
from provml_lightning.runtime.numbering import Numbering
from provml_lightning.storage.point_log import ABSENT, MARK, RECORD, Head

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provml_lightning.storage.point_log import PointLog
    from provml_lightning.storage.recorder import Recorder

__all__ = ["Values"]

_pack = RECORD.pack_into
_now = clock.time_ns


class Values(ABC):
    """Takes the values of a run in one process; every method may be called from any thread.

    Attributes:
        numbers: The number of every metric under every spelling that a caller used; read only.
    """

    _points: PointLog

    def __init__(self) -> None:
        """Begin without a metric."""
        self._lock = threading.RLock()
        self._numbering = Numbering()
        self.numbers = self._numbering.known

    @abstractmethod
    def excuse(self, topic: str, error: ProvMLError) -> None:
        """Say once, and note in the document, that something could not be recorded."""

    @abstractmethod
    def _writable(self) -> Recorder:
        """Return this process's recorder; raise where the run has ended."""

    def record_metric(
        self,
        key: str,
        value: Any,
        context: str | None = None,
        step: Any = None,
        source: str | None = None,
        epoch: Any = None,
        time: int | None = None,
        unit: str | None = None,
    ) -> None:
        """Keep one value; on return it outlives this process.

        Args:
            key: The metric's name, any text.
            value: One number: of Python, of NumPy, or a tensor of one element.
            context: What it belongs to; None for the run itself.
            step: Whole number, or None where there is none [1].
            source: The library that it comes from.
            epoch: Whole number, or None [1].
            time: When, UTC [ns]; None for now.
            unit: Unit of the value; the first one that is told for a metric holds.

        Raises:
            RecordError: The value is not one number, or the step not a whole one.
            RunClosedError: The run has ended.
        """
        try:
            number = self.numbers[source][context][key]
        except (KeyError, TypeError):
            number = self.number_of(key, context, source, unit)
        self.record_value(key, number, value, step, epoch, time)

    def record_metrics(
        self, values: Mapping[str, Any], context: str | None, step: Any, epoch: Any
    ) -> dict[str, Any]:
        """Keep values of one moment; what cannot be kept is excused and spares its neighbours.

        Args:
            values: One number each, by name, as :meth:`record_metric` takes them.
            context: What they belong to; None for the run itself.
            step: Whole number, or None where there is none [1].
            epoch: Whole number, or None [1].

        Returns:
            The values that came too late: another thread has ended the run.

        Raises:
            ProvMLError: One cannot be kept, and the run is strict.
        """
        time = _now()
        known = self.numbers.get(None, {}).get(context, {})
        late: dict[str, Any] = {}
        for key, value in values.items():
            try:
                number = known.get(key) or self.number_of(key, context, None)
                self.record_value(key, number, value, step, epoch, time)
            except RunClosedError:
                late[key] = value
            except (RecordError, StorageError) as error:
                self.excuse(f"metric {key!r}", error)
        return late

    def number_of(
        self,
        key: str,
        context: str | None,
        source: str | None,
        unit: str | None = None,
        library: str | None = None,
    ) -> int:
        """Return the number of a metric, and remember it for this spelling.

        Args:
            key: The metric's name, any text.
            context: What it belongs to; None for the run itself.
            source: The library that it comes from, as the caller says.
            unit: Unit of its values, if this is the first of them.
            library: The library that makes the call, for a metric whose source is None.

        Returns:
            The number; 0, which keeps nothing, where the disk refuses a new file.

        Raises:
            RecordError: A part of the name is not text, or not valid Unicode.
            RunClosedError: The run has ended.
        """
        with self._lock:
            try:
                recorder = self._writable()
            except StorageError as error:  # a child's first file, or one after a part's end
                self.excuse("storage", error)
                return 0
            return self._numbering.assign(recorder, (key, context, source), library, unit)

    def record_value(  # noqa: C901, PLR0912  a branch saves the 60 ns of a call
        self, key: str, number: int, value: Any, step: Any, epoch: Any, time: int | None
    ) -> None:
        """Keep one value of the metric with a number; ``key`` is for messages."""
        if value.__class__ is not float:
            value = to_value(key, value)
        if step.__class__ is not int:
            step = ABSENT if step is None else to_step(key, step)
        if epoch is None:
            epoch = ABSENT
        elif epoch.__class__ is not int:
            epoch = to_step(key, epoch)
        if time is None:
            time = _now()
        while number:
            slots, buffer = head = self._points.head
            offset = next(slots)
            try:
                _pack(buffer, offset, time, step, epoch, value, number, MARK)
            except (struct.error, TypeError, ValueError):  # full, or closed by another thread
                if not self._turn(head, offset, key, step, epoch):
                    return
            else:
                return

    def _turn(self, head: Head, offset: int, key: str, step: int, epoch: int) -> bool:
        """Get the next block where this one is full; tell whether there is one.

        Raises:
            RecordError: The block is not full, so a number does not fit into a record.
            RunClosedError: The run has ended.
        """
        with self._lock:
            try:
                self._writable()
            except StorageError as error:  # the first file after the end of a part
                self.excuse("storage", error)
                return False
        if not self._points.turn(head, offset):
            for number in (step, epoch):
                if number != ABSENT:
                    to_step(key, number)
            raise RecordError(f"metric {key!r}: its time does not fit into 64 bits")
        return True
