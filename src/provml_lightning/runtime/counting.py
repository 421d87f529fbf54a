"""What a run is told of counted operations beside their number, each thing once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from provml_lightning.domain.records import Note
from provml_lightning.errors import SamplerReadError

if TYPE_CHECKING:
    from provml_lightning.runtime.active import AnyRun
    from provml_lightning.samplers.flops import Count

__all__ = ["excuse_count", "note_remarks", "remarks_of"]

# What a run was told already: a call at every step says a thing once.
_TOLD: WeakKeyDictionary[AnyRun, set[tuple[str, str]]] = WeakKeyDictionary()


def excuse_count(run: AnyRun, label: str, error: SamplerReadError) -> None:
    """Say once why there is no count: one warning and a note.

    Raises:
        SamplerReadError: The run is strict.
    """
    missed = SamplerReadError(f"FLOPs {label!r} were not counted: {error}")
    if _is_new(run, label, str(missed)):
        run.excuse(f"flops of {label}", missed)


def note_remarks(run: AnyRun, label: str, found: Count) -> None:
    """Note once what must be known of a count."""
    for remark in remarks_of(found):
        if _is_new(run, label, remark):
            message = f"FLOPs {label!r}: {remark}"
            run.record(Note(time=time.time_ns(), topic="flops", message=message))


def remarks_of(found: Count) -> list[str]:
    """Return what must be known of a count: how it was had, and what is missing in it."""
    missing = ", ".join(sorted(found.missing))
    told = f"the work of {missing} is not in them: there is no formula for it" if missing else None
    return [remark for remark in (found.remark, told) if remark]


def _is_new(run: AnyRun, label: str, message: str) -> bool:
    told = _TOLD.setdefault(run, set())
    is_new = (label, message) not in told
    told.add((label, message))
    return is_new
