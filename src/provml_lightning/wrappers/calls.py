"""One call of a tracked function, from its beginning to what the run is told of it."""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from provml_lightning.capture.foreign import class_name
from provml_lightning.domain.records import FunctionCall
from provml_lightning.domain.redaction import redact
from provml_lightning.errors import ProvMLError, RunClosedError
from provml_lightning.runtime.active import AnyRun, current, deliver
from provml_lightning.wrappers.describing import describe, describe_arguments, shorten

if TYPE_CHECKING:
    from collections.abc import Callable
    from inspect import Signature

__all__ = ["MOST_DESCRIBED", "Call"]

MOST_DESCRIBED = 20
_NOTHING: Any = object()


class _Tally:
    """How many calls of one function in one context began, were told, and failed."""

    __slots__ = ("begun", "failed", "told")

    def __init__(self) -> None:
        self.begun, self.told, self.failed = count(), count(1), count()


# Of every run, and of the time in which there is none; bounded by the functions in the code.
_TALLIES: WeakKeyDictionary[AnyRun, dict[Any, _Tally]] = WeakKeyDictionary()
_BEFORE: dict[Any, _Tally] = {}


class Call:
    """A call that has begun; it belongs to the run that was current then.

    Args:
        function: The function's name.
        context: The context in its one spelling.
        signature: Gives the function's signature, if it has one.
        args: Arguments by position.
        kwargs: Arguments by name.
    """

    __slots__ = ("_arguments", "_began", "_clock", "_context", "_function", "_run")

    def __init__(
        self,
        function: str,
        context: str | None,
        signature: Callable[[], Signature | None],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self._function, self._context = function, context
        self._run = current()
        described = next(_tally(self._run, (function, context)).begun) < MOST_DESCRIBED
        # Now, for the call may change them.
        self._arguments = describe_arguments(signature(), args, kwargs) if described else None
        self._began = time.time_ns()
        self._clock = time.perf_counter_ns()

    def end(self, result: Any = _NOTHING) -> None:
        """Tell of a call that returned."""
        seconds = (time.perf_counter_ns() - self._clock) / 1e9
        told = None
        if self._arguments is not None:
            told = None if result is _NOTHING else describe("", result)
        self._deliver(seconds, told, None)

    def fail(self, error: BaseException) -> None:
        """Tell of a call that raised; nothing that happens here may hide what it raised."""
        seconds = (time.perf_counter_ns() - self._clock) / 1e9
        with suppress(ProvMLError):
            self._deliver(seconds, None, (class_name(error), shorten(redact(_message(error)))))

    def _deliver(self, seconds: float, result: str | None, error: tuple[str, str] | None) -> None:
        ended = time.time_ns()

        def tell(run: AnyRun) -> None:
            self._tell(run, ended, seconds, result, error)

        run = self._run
        if run is not None and run.is_open:
            try:
                tell(run)
            except RunClosedError:  # another thread closed it meanwhile
                deliver(tell)
        else:
            deliver(tell)

    def _tell(
        self,
        run: AnyRun,
        ended: int,
        seconds: float,
        result: str | None,
        error: tuple[str, str] | None,
    ) -> None:
        name, context, source = self._function, self._context, FunctionCall.SOURCE
        tally = _tally(run, (name, context))
        number = next(tally.told)
        run.record_metric(name, seconds, context, number, source, time=ended, unit="s")
        described = self._arguments is not None
        if error is not None:
            failed = f"{name}/failed"
            run.record_metric(failed, seconds, context, number, source, time=ended, unit="s")
            described = next(tally.failed) < MOST_DESCRIBED or described
        if described:
            run.record(
                FunctionCall(
                    time=self._began,
                    function=name,
                    seconds=seconds,
                    context=context,
                    arguments=self._arguments or {},
                    result=result,
                    error_type=error[0] if error else None,
                    error_message=error[1] if error else None,
                )
            )


def _tally(run: AnyRun | None, key: tuple[str, str | None]) -> _Tally:
    tallies = _BEFORE if run is None else _TALLIES.get(run)
    if tallies is None:
        tallies = _TALLIES.setdefault(run, {})  # type: ignore[arg-type]  # None is _BEFORE
    try:
        return tallies[key]
    except KeyError:
        return tallies.setdefault(key, _Tally())


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001  a foreign __str__ may raise anything
        return f"<its message raised {type(failure).__name__}>"
