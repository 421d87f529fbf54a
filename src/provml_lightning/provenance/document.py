"""A PROV document as plain dictionaries in PROV-JSON's own shape.

Building through the ``prov`` library costs ten times the time and three times the memory; it
serves as the reader and the checker in the tests.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from provml_lightning.provenance.vocabulary import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from provml_lightning.domain.values import Plain

__all__ = ["Document", "literal", "qualified", "timestamp"]

_INT32 = range(-(2**31), 2**31)


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

    def element(self, kind: str, identifier: str, attributes: Mapping[str, Any]) -> str:
        """Add an agent, activity or entity and return its id.

        An id that is taken gets ``~2``, ``~3``, … behind it, which no encoded name ends in.
        """
        taken = self._records[kind]
        free, number = identifier, 1
        while free in taken:
            number += 1
            free = f"{identifier}~{number}"
        taken[free] = {name: value for name, value in attributes.items() if value is not None}
        return free

    def relate(self, kind: str, **fields: Any) -> None:
        """Add a relation; ``fields`` are PROV's own names, such as ``entity`` and ``time``."""
        self._relations += 1
        stated = {f"prov:{name}": value for name, value in fields.items() if value is not None}
        self._records.setdefault(kind, {})[f"_:id{self._relations}"] = stated

    def as_dict(self) -> dict[str, Any]:
        """Return the document in PROV-JSON's shape."""
        return {kind: records for kind, records in self._records.items() if records}


def literal(value: Plain) -> Any:
    """Return a value as PROV-JSON writes it, its type kept.

    Source:
        PROV-JSON 2.1: numbers and booleans stand for themselves; JSON has no NaN and no date, and
        a number without a type is an ``xsd:int`` or an ``xsd:double``.
    """
    if isinstance(value, bool | str):
        return value
    if isinstance(value, datetime):
        return {"$": value.isoformat(), "type": "xsd:dateTime"}
    if isinstance(value, int):
        return value if value in _INT32 else {"$": str(value), "type": "xsd:long"}
    if math.isfinite(value):
        return value
    text = "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"
    return {"$": text, "type": "xsd:double"}


def qualified(names: Iterable[str]) -> Any:
    """Return qualified names as an attribute's value: one, or a list."""
    values = [{"$": name, "type": "prov:QUALIFIED_NAME"} for name in names]
    return values[0] if len(values) == 1 else values


def timestamp(nanoseconds: int) -> str:
    """Return UTC nanoseconds since 1970 as ISO 8601 with a zone, to the microsecond."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)
    return moment.isoformat(timespec="microseconds")
