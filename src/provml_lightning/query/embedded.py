"""Lists of numbers that an older generation wrote into the document as text."""

from __future__ import annotations

from provml_lightning.errors import MalformedDocumentError

__all__ = ["is_cut", "parse"]

_SHOWN = 80


def is_cut(text: str) -> bool:
    """Tell whether NumPy left out the middle: ``[0.16, 0.12, ..., 0.06]``."""
    return "..." in text


def parse(text: str, name: str) -> list[float | int | None]:
    """Return the numbers of a list; ``None`` stays, ``nan`` and ``inf`` are numbers.

    Nothing is evaluated: every item is a number or an error.

    Raises:
        MalformedDocumentError: It is not a list of numbers.
    """
    stripped = text.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")):
        raise MalformedDocumentError(f"metric {name!r}: {_short(text)} is not a list of numbers")
    items = stripped[1:-1].replace(",", " ").split()
    try:
        return [_number(item) for item in items]
    except ValueError as error:
        raise MalformedDocumentError(f"metric {name!r}: {error} in {_short(text)}") from error


def _number(item: str) -> float | int | None:
    if item in ("None", "null"):
        return None
    try:
        return int(item)
    except ValueError:
        return float(item)


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
