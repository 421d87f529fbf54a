"""What counts as a metric's value, step and time; everything else is refused by name."""

from __future__ import annotations

import math
import operator
from datetime import datetime
from typing import Any

from provml_lightning.errors import RecordError

__all__ = ["to_step", "to_time_ns", "to_value"]

_INT64 = range(-(2**63) + 1, 2**63)
_SECONDS_LOOK_LIKE = range(10**8, 10**11)
_LATEST = 1e10  # seconds; more nanoseconds than 64 bits hold
_LONGEST_INT = 8192  # bits; Python writes no longer ones as decimals


def to_value(name: str, value: Any) -> float:
    """Return ``value`` as a float; tensors are read at once and let go.

    Raises:
        RecordError: It is not one number.
    """
    if isinstance(value, (str, bytes, complex)) or value is None:
        raise _not_a_number(name, value)
    try:
        item = getattr(value, "item", None)
        number = float(value if item is None else item())
    except Exception as error:  # a foreign item() or __float__ may raise anything
        raise _not_a_number(name, value) from error
    return number


def to_step(name: str, step: Any) -> int | None:
    """Return ``step`` as an integer of 64 bits, or None where it is None.

    Raises:
        RecordError: It is not a whole number, or has more than 64 bits.
    """
    if step is None:
        return None
    try:
        whole = operator.index(step)
    except Exception:  # noqa: BLE001  a foreign __index__ may raise anything
        value = to_value(name, step)
        if not math.isfinite(value) or value != int(value):
            raise RecordError(
                f"metric {name!r}: step {step!r} is not a whole number; pass an int or None"
            ) from None
        whole = int(value)
    if whole not in _INT64:
        raise RecordError(f"metric {name!r}: step {_shown(whole)} does not fit into 64 bits")
    return whole


def to_time_ns(name: str, timestamp: Any) -> int:
    """Return ``timestamp`` as UTC nanoseconds since 1970 [ns].

    An int is milliseconds, as in the documents' metric files; a float is seconds, as
    ``time.time()`` gives them; a datetime must have a time zone.

    Raises:
        RecordError: It is none of these, or an int that was meant as seconds or nanoseconds.
    """
    if isinstance(timestamp, datetime):
        if timestamp.tzinfo is None:
            raise RecordError(f"metric {name!r}: {timestamp!r} has no time zone; add tzinfo=UTC")
        nanoseconds = round(timestamp.timestamp() * 1e6) * 1000
    elif isinstance(timestamp, float):
        nanoseconds = round(timestamp * 1e9) if abs(timestamp) < _LATEST else _INT64.stop
    else:
        milliseconds = _milliseconds(name, timestamp)
        if abs(milliseconds) in _SECONDS_LOOK_LIKE:
            raise RecordError(
                f"metric {name!r}: timestamp {timestamp} looks like seconds; an int is milliseconds"
                " since 1970, a float is seconds"
            )
        nanoseconds = milliseconds * 1_000_000
    if nanoseconds not in _INT64:
        raise RecordError(
            f"metric {name!r}: timestamp {_shown(timestamp)} is out of range; an int is"
            " milliseconds since 1970, a float is seconds"
        )
    return nanoseconds


def _milliseconds(name: str, timestamp: Any) -> int:
    try:
        return operator.index(timestamp)
    except TypeError:
        raise RecordError(
            f"metric {name!r}: timestamp {timestamp!r} is no time; give milliseconds since 1970 as"
            " an int, seconds as a float, or a datetime with a time zone"
        ) from None


def _shown(value: Any) -> str:
    is_long = isinstance(value, int) and value.bit_length() > _LONGEST_INT
    return f"of {value.bit_length()} bits" if is_long else str(value)


def _not_a_number(name: str, value: Any) -> RecordError:
    kind = type(value)
    shape = getattr(value, "shape", None)
    described = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    if shape:
        described += f" of shape {tuple(shape)}"
    return RecordError(
        f"metric {name!r}: a {described} is not one number. Log one scalar a call (for a tensor"
        " .mean() or .item() of one element); text and objects go to log_param"
    )
