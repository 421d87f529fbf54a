"""How a coroutine or a generator is followed from its first step to its last."""

from __future__ import annotations

import inspect
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from provml_lightning.capture.foreign import attribute

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    Begin = Callable[[], "Followed"]
    Start = Callable[[], Any]
    Driver = Callable[[Begin, Start], Any]

__all__ = ["Followed", "awaiting", "driver", "mark_coroutine"]


class Followed(Protocol):
    """What has begun, and is told how it ended."""

    def end(self, result: Any = ...) -> None:
        """Take what was returned, if that is one thing."""

    def fail(self, error: BaseException) -> None:
        """Take what was raised."""


def driver(func: Any) -> Driver | None:
    """Return what drives the calls of ``func``, None where a call is over when it returns."""
    drivers = (awaiting, _generate, _generate_async)
    known = attribute(func, "_driver")  # of a function that is tracked already
    if any(known is one for one in drivers):
        return known  # type: ignore[no-any-return]
    target = func
    while isinstance(target, (partial, staticmethod, classmethod)):
        target = target.func if isinstance(target, partial) else target.__func__
    if not inspect.isroutine(target) and not isinstance(target, type):
        target = type(target).__call__
    if inspect.iscoroutinefunction(target):
        return awaiting
    if inspect.isasyncgenfunction(target):
        return _generate_async
    return _generate if inspect.isgeneratorfunction(target) else None


def mark_coroutine(tracked: Any) -> None:
    """Let asyncio, and whoever asks it, see that calls of ``tracked`` are to be awaited."""
    if sys.version_info >= (3, 12):
        inspect.markcoroutinefunction(tracked)
    else:
        from asyncio import coroutines

        tracked._is_coroutine = vars(coroutines)["_is_coroutine"]  # noqa: SLF001  3.11's own mark


async def awaiting(begin: Begin, start: Start) -> Any:
    """Follow a coroutine."""
    call = begin()
    try:
        result = await start()
    except BaseException as error:
        call.fail(error)
        raise
    call.end(result)
    return result


def _generate(begin: Begin, start: Start) -> Generator[Any, Any, Any]:
    call = begin()
    try:
        result = yield from start()
    except GeneratorExit:  # the caller wants no more of it, which is no failure
        call.end()
        raise
    except BaseException as error:
        call.fail(error)
        raise
    call.end(result)
    return result


async def _generate_async(begin: Begin, start: Start) -> AsyncGenerator[Any, Any]:
    call = begin()
    try:
        source = start()
        item = await anext(source)
        while True:
            try:
                sent = yield item
            except GeneratorExit:
                await source.aclose()
                raise
            except BaseException as error:  # noqa: BLE001  what the caller throws goes in
                item = await source.athrow(error)
            else:
                item = await source.asend(sent)
    except (StopAsyncIteration, GeneratorExit) as error:
        call.end()
        if isinstance(error, GeneratorExit):
            raise
    except BaseException as error:
        call.fail(error)
        raise
