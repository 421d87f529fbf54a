"""A function whose every call is recorded in the current run."""

from __future__ import annotations

import inspect
import sys
from functools import cached_property, partial, update_wrapper
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from typing_extensions import override

from provml_lightning.capture.foreign import attribute, class_name
from provml_lightning.domain.context import canonical_context
from provml_lightning.errors import ConfigurationError
from provml_lightning.runtime.active import current
from provml_lightning.wrappers.calls import Call
from provml_lightning.wrappers.driving import awaiting, driver, mark_coroutine

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ProvenanceTrackedFunction"]

P = ParamSpec("P")
R = TypeVar("R")


class ProvenanceTrackedFunction(Generic[P, R]):
    """Wraps or decorates a function; what it returns, raises and is called stays as it is.

    Each call is a value [s] of the metric that has the function's name, in the current run; calls
    before any run wait for the first. Arguments and result of the first calls are described. A
    coroutine or a generator lasts from its first step to its last.

    In a class it binds as the function does. It pickles where the function does. With a context
    it decorates as ``@partial(ProvenanceTrackedFunction, context="Training")``.

    Args:
        func: A function, method, static or class method, lambda, coroutine or generator function,
            built-in, or any other callable.
        context: What its calls belong to; None for the run itself.

    Raises:
        ConfigurationError: ``func`` cannot be called.
    """

    def __init__(self, func: Callable[P, R], context: str | None = None) -> None:
        tracked: Any = func
        if not callable(tracked) and not isinstance(tracked, classmethod):
            raise ConfigurationError(
                f"func={func!r} cannot be called; give a function, such as"
                " ProvenanceTrackedFunction(train)"
            )
        update_wrapper(self, func, updated=())
        self._func = func
        self._context = canonical_context(context)
        self._name = _name(func)
        self._driver = driver(func)
        if self._driver is awaiting:
            mark_coroutine(self)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, and tell the current run of it."""
        run = current()
        if run is not None and not run.records:
            return self._func(*args, **kwargs)
        if self._driver is not None:
            begin = partial(self._begin, args, kwargs)
            driven: R = self._driver(begin, partial(self._func, *args, **kwargs))
            return driven
        call = self._begin(args, kwargs)
        try:
            result = self._func(*args, **kwargs)
        except BaseException as error:
            call.fail(error)
            raise
        call.end(result)
        return result

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind as the function itself would."""
        if isinstance(self._func, (FunctionType, ProvenanceTrackedFunction)):
            return self if instance is None else MethodType(self, instance)
        bind = getattr(type(self._func), "__get__", None)
        if bind is None:
            return self
        return type(self)(bind(self._func, instance, owner), self._context)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the function."""
        if name == "_func":  # not there yet: it is being unpickled
            raise AttributeError(name)
        return getattr(self._func, name)

    @override
    def __reduce__(self) -> Any:
        """Pickle by name where the name leads here, as for functions; else with the function."""
        own = vars(self)
        if _found(own.get("__module__"), own.get("__qualname__")) is self:
            return own["__qualname__"]
        return type(self), (self._func, self._context)

    @override
    def __repr__(self) -> str:
        return f"<ProvenanceTrackedFunction {self._name}>"

    @cached_property
    def _signature(self) -> inspect.Signature | None:
        try:
            return inspect.signature(self._func)
        except (TypeError, ValueError):  # many a built-in has none
            return None

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        return Call(self._name, self._context, lambda: self._signature, args, kwargs)


def _name(func: Any) -> str:
    """Return module and qualified name; a lambda's with its line, for a file may have many."""
    if isinstance(func, partial):
        return f"partial({_name(func.func)})"
    name = attribute(func, "__qualname__") or attribute(func, "__name__")
    if not isinstance(name, str):
        return class_name(func)
    module = attribute(func, "__module__")
    full = f"{module}.{name}" if isinstance(module, str) else name
    code = attribute(func, "__code__")
    line = f":{code.co_firstlineno}" if code is not None and name.endswith("<lambda>") else ""
    return full.removeprefix("builtins.") + line


def _found(module: Any, qualname: Any) -> Any:
    """Return what a name leads to, as pickle looks it up; None where it leads nowhere."""
    if not isinstance(qualname, str) or module not in sys.modules:
        return None
    found: Any = sys.modules[module]
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found
