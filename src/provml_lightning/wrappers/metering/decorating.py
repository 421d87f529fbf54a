"""A function whose every call is measured, and which is otherwise what it was."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from provml_lightning.errors import ConfigurationError
from provml_lightning.wrappers.driving import awaiting, driver

if TYPE_CHECKING:
    from collections.abc import Callable

    from provml_lightning.wrappers.driving import Driver
    from provml_lightning.wrappers.metering.measure import Measure

    Begin = Callable[[], Measure]

__all__ = ["measured"]


def measured(function: Any, begin: Begin) -> Any:
    """Return a function that does the same, and is measured from its beginning to its end.

    Args:
        function: A function, coroutine or generator function, static or class method.
        begin: Begins a measure.

    Raises:
        ConfigurationError: ``function`` cannot be called.
    """
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(measured(function.__func__, begin))
    if not callable(function):
        raise ConfigurationError(f"measure_power: {function!r} cannot be called")
    drive = driver(function)
    if drive is None:
        return _called(function, begin)
    return _awaited(function, begin) if drive is awaiting else _driven(function, begin, drive)


def _called(function: Any, begin: Begin) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        measure = begin()
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            measure.fail(error)
            raise
        measure.end()
        return result

    return call


def _awaited(function: Any, begin: Begin) -> Any:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await awaiting(begin, functools.partial(function, *args, **kwargs))

    return call


def _driven(function: Any, begin: Begin, drive: Driver) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return drive(begin, functools.partial(function, *args, **kwargs))

    return call
