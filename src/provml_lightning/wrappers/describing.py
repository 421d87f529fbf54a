"""Arguments and results in few words: cheap, bounded, without their secrets.

Of a foreign object only shape and type are asked: its repr may be huge, slow, or ask a data base.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from enum import Enum
from inspect import BoundArguments, Parameter, Signature
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any

from provml_lightning.capture.foreign import attribute, class_name
from provml_lightning.domain.redaction import MASK, safe_value
from provml_lightning.domain.values import to_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["describe", "describe_arguments", "shorten"]

_LONGEST = 200
_MOST_ARGUMENTS = 32
_MOST_MEMBERS = 6
_DEEPEST = 3
_PLAIN = (bool, int, float, complex, str, type(None), date, Decimal, Enum, PathLike)
_PAIRS: dict[type, str] = {list: "[]", tuple: "()", set: "{}", frozenset: "{}"}


def describe(name: str, value: Any) -> str:
    """Return a value in at most 200 characters; masked where its name says secret.

    Numbers, texts, times and paths are themselves; tensors, arrays and frames are class, type and
    shape; containers their first six members, three levels deep; anything else is its class.
    """
    return shorten(_safe_text(name, value))


def shorten(text: str) -> str:
    """Return a text cut at 200 characters."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def describe_arguments(
    signature: Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, str]:
    """Return the first 32 arguments of a call by their names, those without one by position."""
    named = _named(signature, args, kwargs)
    shown = {name: describe(name, value) for name, value in named[:_MOST_ARGUMENTS]}
    if len(named) > _MOST_ARGUMENTS:
        shown["…"] = f"{len(named) - _MOST_ARGUMENTS} more"
    return shown


def _named(
    signature: Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[str, Any]]:
    bound = _bound(signature, args, kwargs)
    if bound is None:
        return [*((str(number), value) for number, value in enumerate(args)), *kwargs.items()]
    named: list[tuple[str, Any]] = []
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is Parameter.VAR_KEYWORD:
            named += value.items()
        elif kind is Parameter.VAR_POSITIONAL:
            named += ((f"{name}[{number}]", member) for number, member in enumerate(value))
        else:
            named.append((name, value))
    return named


def _bound(
    signature: Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> BoundArguments | None:
    """Return the arguments bound to names; None where they do not fit, as the call will say."""
    if signature is None:
        return None
    try:
        return signature.bind(*args, **kwargs)
    except TypeError:
        return None


def _safe_text(name: str, value: Any) -> str:
    try:
        return _text(name, value, _DEEPEST)
    except Exception:  # noqa: BLE001  another thread may change it meanwhile; the call must go on
        return class_name(value)


def _text(name: str, value: Any, depth: int) -> str:  # noqa: PLR0911  one line a kind of value
    if safe_value(name, "") == MASK:
        return MASK
    if isinstance(value, str):
        return repr(safe_value(name, value))
    if isinstance(value, _PLAIN):
        return str(to_plain(value))
    if isinstance(value, (bytes, bytearray)):
        return f"{type(value).__name__} of {len(value)}"
    if type(value) in _PAIRS:
        shown = (_text("", member, depth - 1) for member in value)
        return _members(shown, len(value), _PAIRS[type(value)], depth)
    if type(value) is dict:
        return _members(
            (_item(*item, depth - 1) for item in value.items()), len(value), "{}", depth
        )
    return _foreign(value)


def _members(shown: Iterator[str], count: int, brackets: str, depth: int) -> str:
    members = list(islice(shown, _MOST_MEMBERS if depth else 0))
    if count > len(members):
        members.append(f"… {count} in all")
    return f"{brackets[0]}{', '.join(members)}{brackets[1]}"


def _item(key: Any, value: Any, depth: int) -> str:
    name = str(to_plain(key)) if isinstance(key, _PLAIN) else class_name(key)
    return f"{name}: {_text(name, value, depth)}"


def _foreign(value: Any) -> str:
    if isinstance(value, type) or callable(attribute(value, "__get__")):
        name = attribute(value, "__qualname__") or class_name(value)
        return f"{attribute(value, '__module__')}.{name}"
    shape = attribute(value, "shape")
    if not isinstance(shape, tuple):
        return class_name(value)
    dtype = str(attribute(value, "dtype") or "").removeprefix("torch.")
    sizes = ", ".join(str(size) for size in shape)
    number = to_plain(value) if shape == () else ""
    shown = "" if isinstance(number, str) else f" {number}"
    return f"{class_name(value)} {dtype}[{sizes}]{shown}".replace(" [", "[", 1)
