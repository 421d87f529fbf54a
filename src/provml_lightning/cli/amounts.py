"""Numbers, times and sizes as a person reads them."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["ABSENT", "bytes_of", "count", "duration", "moment", "number", "plural"]

_UNITS = ("kB", "MB", "GB", "TB", "PB")
ABSENT = "–"


def number(value: float | None) -> str:
    """Return a value with six digits."""
    return ABSENT if value is None else f"{value:.6g}"


def count(value: int | None) -> str:
    """Return a whole number with its thousands apart."""
    return ABSENT if value is None else f"{value:,}".replace(",", " ")


def plural(value: int, what: str) -> str:
    """Return how many there are of something."""
    return f"{count(value)} {what}" + ("" if value == 1 else "s")


def bytes_of(size: int | None) -> str:
    """Return a size in decimal units."""
    if size is None:
        return ABSENT
    if size < 1000:  # noqa: PLR2004  decimal units
        return f"{size} B"
    scaled = float(size)
    for unit in _UNITS:
        scaled /= 1000
        if scaled < 999.5 or unit == _UNITS[-1]:  # noqa: PLR2004  rounds to 999
            return f"{scaled:.3g} {unit}"
    raise AssertionError("unreachable: the last unit takes every size")


def moment(value: datetime | None) -> str:
    """Return a time in UTC; one without a zone as it is told."""
    if value is None:
        return ABSENT
    if value.tzinfo is None:
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def duration(seconds: float | None) -> str:
    """Return a span of time, in its two greatest units."""
    if seconds is None:
        return ABSENT
    if seconds < 60:  # noqa: PLR2004
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:  # noqa: PLR2004
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:  # noqa: PLR2004
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"
