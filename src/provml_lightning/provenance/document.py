"""A PROV document as plain dictionaries in PROV-JSON's own shape.

Building through the ``prov`` library costs ten times the time and three times the memory; it
serves as the reader and the checker in the tests.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from provml_lightning.provenance.vocabulary import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from provml_lightning.domain.values import Plain

__all__ = ["Document", "iri", "literal", "qualified", "timestamp"]

_NO_NUMBERS = {"nan": "NaN", "inf": "INF", "-inf": "-INF"}
_WIDEST_OFFSET = timedelta(hours=14)


class Document:
    """Records by kind and id; one record an id.

    Source:
        PROV-JSON, W3C member submission of 24 April 2013.
    """

    def __init__(self, namespace: str) -> None:
        """Begin a document whose own ids live in ``namespace``."""
        self._records: dict[str, dict[str, Any]] = {
            "prefix": {"default": namespace, **NAMESPACES},
            "agent": {},
            "activity": {},
            "entity": {},
        }
        self._relations = 0
        self._copies: dict[tuple[str, str], int] = {}

    def declare(self, prefix: str, namespace: str) -> None:
        """Give a namespace a prefix."""
        self._records["prefix"][prefix] = namespace

    def element(self, kind: str, identifier: str, attributes: Mapping[str, Any]) -> str:
        """Add an agent, activity or entity and return its id.

        An id that is taken gets ``~2``, ``~3``, … behind it, which no encoded name ends in.
        """
        records = self._records[kind]
        if identifier in records:
            number = self._copies[kind, identifier] = self._copies.get((kind, identifier), 1) + 1
            identifier = f"{identifier}~{number}"
        records[identifier] = attributes
        return identifier

    def relate(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Add a relation; ``fields`` are PROV-JSON's own, such as ``prov:entity``."""
        self._relations += 1
        self._records.setdefault(kind, {})[f"_:id{self._relations}"] = fields

    def as_dict(self) -> dict[str, Any]:
        """Return the document in PROV-JSON's shape."""
        return {kind: records for kind, records in self._records.items() if records}


def literal(value: Plain) -> Any:
    """Return a value as PROV-JSON writes it, its type kept in every reader.

    Source:
        PROV-JSON, typed literals: booleans, texts and numbers stand for themselves, everything
        else says its type. So does a whole float, since many a reader makes ``1.0`` an integer.
    """
    if isinstance(value, float):
        exact = math.isfinite(value) and not value.is_integer()
        return value if exact else _double(value)
    if isinstance(value, str):
        return value if value.isascii() else _valid(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return _whole(value)
    return {"$": _within_xsd(value).isoformat(), "type": "xsd:dateTime"}


def iri(text: str) -> Any:
    """Return an IRI as an attribute's value."""
    return {"$": text, "type": "xsd:anyURI"}


def qualified(names: Iterable[str]) -> Any:
    """Return qualified names as an attribute's value: one, or a list."""
    values = [{"$": name, "type": "prov:QUALIFIED_NAME"} for name in names]
    return values[0] if len(values) == 1 else values


def timestamp(nanoseconds: int) -> str:
    """Return UTC nanoseconds since 1970 as ISO 8601 with a zone, to the microsecond."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{_second(seconds)}.{rest // 1000:06d}+00:00"


@lru_cache(maxsize=4096)
def _second(seconds: int) -> str:
    """Return a second of UTC without its zone; thousands of records share one."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).isoformat()[:-6]


def _double(value: float) -> Any:
    """Return a float that is whole or no number; it says its type."""
    text = repr(value)
    return {"$": _NO_NUMBERS.get(text, text), "type": "xsd:double"}


def _whole(value: int) -> Any:
    """Return an integer; one that no ``xsd:int`` holds says its type."""
    if -(2**31) <= value < 2**31:
        return value
    fits = -(2**63) <= value < 2**63
    return {"$": str(value), "type": "xsd:long" if fits else "xsd:integer"}


def _valid(text: str) -> str:
    """Return text as valid Unicode; a lone surrogate, as file names have them, is spelled out.

    Source:
        RFC 8259 8.2: readers differ on JSON with a lone surrogate, and many refuse it whole.
    """
    return text.encode(errors="backslashreplace").decode()


def _within_xsd(moment: datetime) -> datetime:
    """Return a moment with an offset that ``xsd:dateTime`` can write, else in UTC.

    Source:
        XML Schema 2, 3.2.7: whole minutes, at most 14 hours.
    """
    offset = moment.utcoffset()
    if offset is None or (
        offset % timedelta(minutes=1) == timedelta() <= _WIDEST_OFFSET - abs(offset)
    ):
        return moment
    return moment.astimezone(UTC)
