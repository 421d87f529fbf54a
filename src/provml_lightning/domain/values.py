"""Any Python value as one that a document can hold: typed where it can be, else bounded text."""

from __future__ import annotations

import dataclasses
import numbers
import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from os import PathLike, fspath
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

__all__ = ["LONGEST_TEXT", "Plain", "flatten", "to_plain"]

Plain = bool | int | float | str | datetime
LONGEST_TEXT = 8192
_DEEPEST = 32
# Python writes no integers of more than 4300 digits as decimals (sys.set_int_max_str_digits).
_LONGEST_INT = 8192
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType)


def to_plain(value: Any) -> Plain:  # noqa: PLR0911  one line a kind of value
    """Return ``value`` as a bool, int, float, aware datetime or text of at most 8192 characters.

    Numbers of other libraries become Python's; an enumeration's member its value; None is the
    text ``"None"``; a function or class is its name; anything else is its ``repr``, without
    addresses in memory, which say nothing to a reader, and with the shape of an array that
    ``repr`` cuts. Nothing is called or iterated but ``repr``.
    """
    if isinstance(value, Enum):
        return to_plain(value.value)
    if isinstance(value, (bool, int, float)):
        return _number(value)
    if isinstance(value, str):
        return _bounded(str(value))
    if isinstance(value, datetime):
        return value if value.tzinfo else _bounded(value.isoformat())
    if isinstance(value, (date, Decimal)):
        return str(value)
    if isinstance(value, PathLike):
        path = fspath(value)
        return _bounded(path if isinstance(path, str) else path.decode(errors="surrogateescape"))
    scalar = _scalar(value)
    return _bounded(_named(value) or _described(value)) if scalar is None else scalar


def flatten(values: Any, separator: str = "/") -> dict[str, Any]:
    """Return nested mappings, namespaces and dataclasses as one flat dict with joined keys.

    Something that contains itself, or is nested deeper than 32 levels, is kept as its text.
    """
    flat: dict[str, Any] = {}
    for key, value in (_children(values) or {}).items():
        _flatten_into(flat, str(key), value, separator, (id(values),))
    return flat


def _flatten_into(
    flat: dict[str, Any], prefix: str, value: Any, separator: str, above: tuple[int, ...]
) -> None:
    children = _children(value)
    if not children or id(value) in above or len(above) >= _DEEPEST:
        flat[prefix] = value
        return
    for key, child in children.items():
        name = f"{prefix}{separator}{key}"
        _flatten_into(flat, name, child, separator, (*above, id(value)))


def _children(value: Any) -> Mapping[Any, Any] | None:
    if isinstance(value, Mapping):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: getattr(value, name) for name in names if hasattr(value, name)}
    if any(kind.__name__ in {"Namespace", "SimpleNamespace"} for kind in type(value).__mro__):
        fields: dict[str, Any] = vars(value)
        return fields
    return None


def _number(value: bool | float) -> Plain:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() <= _LONGEST_INT else hex(value)
    return float(value)


def _scalar(value: Any) -> Plain | None:
    """Return a NumPy scalar or a 0-dim tensor as Python's number, None for everything else."""
    if isinstance(value, numbers.Integral):
        return _number(int(value))
    if isinstance(value, numbers.Real):
        return float(value)
    read = _attribute(value, "item")
    if read is None or _attribute(value, "shape") != ():
        return None
    try:
        item = read()
    except (RuntimeError, ValueError, TypeError):  # a meta tensor has no value
        return None
    return _number(item) if isinstance(item, (bool, int, float)) else None


def _named(value: Any) -> str | None:
    """Return the name of a function or class; None for everything else."""
    if not isinstance(value, (type, *_FUNCTIONS)):
        return None
    module = getattr(value, "__module__", None)
    name = f"{module}.{value.__qualname__}" if module else value.__qualname__
    return name.removeprefix("builtins.")


def _described(value: Any) -> str:
    text = _ADDRESS.sub("", _safe_repr(value))
    shape, dtype = _attribute(value, "shape"), _attribute(value, "dtype")
    if isinstance(shape, tuple) and dtype is not None and "..." in text:
        text += f", shape {tuple(shape)}, dtype {dtype}"
    return text


def _attribute(value: Any, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001  a foreign __getattr__ may raise anything
        return None


def _safe_repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001  a foreign __repr__ may raise anything
        kind = type(value)
        return f"<{kind.__module__}.{kind.__qualname__}, its repr raised {type(error).__name__}>"


def _bounded(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2 - 32
    return f"{text[:half]} … [{len(text) - 2 * half} characters left out] … {text[-half:]}"
