"""The numbers under which a process keeps its metrics."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.metric_names import metric_key
from provml_lightning.domain.records import Series

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provml_lightning.domain.reading import MetricKey
    from provml_lightning.storage.recorder import Recorder

__all__ = ["Numbering"]

Spelling = tuple[str, Any, str | None]


class Numbering:
    """A number for every metric, the same in all files of a process.

    Attributes:
        known: The number of every spelling that a caller used, by source, context and name; read
            without a lock. Three look-ups of a text cost half of one of a tuple.
    """

    def __init__(self) -> None:
        self.known: dict[str | None, dict[Any, dict[str, int]]] = {}
        self._series: dict[MetricKey, Series] = {}
        self._free = itertools.count(1)

    def assign(
        self, recorder: Recorder, spelling: Spelling, library: str | None, unit: str | None
    ) -> int:
        """Return a metric's number; a new one is told to the journal first.

        Args:
            recorder: Where it is told.
            spelling: Name, context and source as the caller gave them.
            library: The source of a metric whose caller gave none.
            unit: Unit of the values of a new one.

        Raises:
            RecordError: A part of the name is not text, or not valid Unicode.
        """
        key, context, source = spelling
        name = metric_key(key, context, library if source is None else source)
        if name not in self._series:
            number = next(self._free)  # never twice, even if we are interrupted here
            series = Series(time=time.time_ns(), number=number, unit=unit, **name._asdict())
            recorder.append(series)
            self._series[name] = series
        number = self._series[name].number
        self.known.setdefault(source, {}).setdefault(context, {})[key] = number
        return number

    def told(self) -> Iterable[Series]:
        """Return what a new file must say of the numbers before its first value."""
        return self._series.values()
