"""Tell the current run several values or parameters at once."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from time import time_ns
from typing import TYPE_CHECKING, Any

from provml_lightning.api.records import log_param
from provml_lightning.capture.callers import library_of
from provml_lightning.domain.scalars import to_step, to_time_ns, to_value
from provml_lightning.domain.values import flatten
from provml_lightning.errors import RecordError
from provml_lightning.runtime.active import deliver

if TYPE_CHECKING:
    from provml_lightning.runtime.active import AnyRun

__all__ = ["log_metrics", "log_params"]


def log_metrics(
    metrics: Mapping[str, Any],
    context: str | None = None,
    step: int | None = 0,
    source: str | None = None,
    timestamp: Any = 0,
    *,
    epoch: int | None = None,
) -> None:
    """Keep values of several metrics, all of one moment, as :func:`log_metric` keeps one.

    Args:
        metrics: One number each, by name; names of nested ones are joined with ``/``.
        context: What they belong to, a :class:`Context` or any text; None for the run itself.
        step: Whole number, or None where there is none [1].
        source: The library that they come from. None: the installed library that logs them; none
            for the user's own code.
        timestamp: When: milliseconds since 1970 as an int, seconds as a float, a datetime with a
            time zone; 0 or None for now.
        epoch: Whole number, or None [1].

    Raises:
        RecordError: There are no names, a value is not one number, the step not a whole one, the
            time none; nothing is kept then.
    """
    when = to_time_ns("metrics", timestamp) if timestamp else time_ns()
    found = library_of(sys._getframe(1)) if source is None else source  # noqa: SLF001
    read = {name: to_value(name, value) for name, value in _flat("metrics", metrics).items()}
    at, era = to_step("metrics", step), to_step("metrics", epoch)

    def tell(run: AnyRun) -> None:
        for name, value in read.items():
            run.record_metric(name, value, context, at, found, epoch=era, time=when)

    deliver(tell)


def log_params(
    params: Mapping[str, Any],
    context: str | None = None,
    source: str | None = None,
    *,
    is_output: bool = False,
) -> None:
    """Keep several parameters, as :func:`log_param` keeps one.

    Args:
        params: Anything by name: a mapping, a namespace or a dataclass; names of nested ones are
            joined with ``/``.
        context: What they belong to; None for the run itself.
        source: The library that they come from.
        is_output: The run made them, such as final scores.

    Raises:
        RecordError: There are no names.
    """
    for name, value in _flat("params", params).items():
        log_param(name, value, context, source, is_output=is_output)


def _flat(what: str, told: Any) -> dict[str, Any]:
    found = flatten(told)
    if not found and not isinstance(told, Mapping):
        raise RecordError(f"{what}={told!r} must be a mapping, a namespace or a dataclass")
    for name in found:
        if name != name.encode(errors="replace").decode():
            raise RecordError(f"{what}: {name!r} is no text that can be written")
    return found
