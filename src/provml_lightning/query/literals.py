"""PROV-JSON's literals as Python's values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

__all__ = ["number_of", "text_of", "texts_of", "unwrap", "whole_of"]

_INT64 = range(-(2**63), 2**63)


def unwrap(value: Any) -> Any:
    """Return the value of a literal ``{"$": …, "type": …}``; everything else as it is.

    A list is unwrapped value by value. A value that is not of its type stays text.
    """
    if isinstance(value, list):
        return [unwrap(one) for one in value]
    if not isinstance(value, Mapping) or "$" not in value:
        return value
    read = _READERS.get(str(value.get("type", "")).rpartition(":")[2])
    if read is None:
        return value["$"]
    try:
        return read(value["$"])
    except (KeyError, TypeError, ValueError):
        return value["$"]


def text_of(value: Any) -> str | None:
    """Return the text of a literal, of a list its first, None where there is none."""
    return next(iter(texts_of(value)), None)


def texts_of(value: Any) -> list[str]:
    """Return the texts of one literal or of a list of them."""
    plain = unwrap(value)
    several = plain if isinstance(plain, list) else [plain]
    return [str(one) for one in several if one is not None]


def number_of(value: Any) -> float | None:
    """Return the number of a literal, None where it is none."""
    try:
        return float(unwrap(value))
    except (TypeError, ValueError, OverflowError):
        return None


def whole_of(value: Any) -> int | None:
    """Return the whole number of a literal, None where it is none or has more than 64 bits."""
    plain = unwrap(value)
    return int(plain) if isinstance(plain, int) and plain in _INT64 else None


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    return {"true": True, "1": True, "false": False, "0": False}[str(value).strip().lower()]


def _whole(value: Any) -> int:
    return int(str(value))


def _date_time(value: Any) -> datetime:
    return datetime.fromisoformat(str(value))


_WHOLE = (
    "int integer long short byte nonNegativeInteger positiveInteger nonPositiveInteger"
    " negativeInteger unsignedLong unsignedInt unsignedShort unsignedByte"
)
_READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_WHOLE.split(), _whole),
    **dict.fromkeys(("double", "float", "decimal"), float),
    "boolean": _boolean,
    "dateTime": _date_time,
    "string": str,
}
