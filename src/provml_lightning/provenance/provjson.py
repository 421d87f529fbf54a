"""PROV-JSON as text: one record a line, so that people and diff can read it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["dumps"]

# Nothing in a document holds itself, and looking for it takes a tenth of the time.
_encode = json.JSONEncoder(allow_nan=False, check_circular=False).encode


def dumps(document: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Return a document as PROV-JSON; the same document gives the same bytes.

    Source:
        PROV-JSON; ASCII alone, since every JSON reader takes that.
    """
    return "".join(_lines(document)).encode("ascii")


def _lines(document: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    opening = "{\n"
    for kind, records in document.items():
        yield f"{opening}{_encode(kind)}: {{\n"
        yield ",\n".join(f" {_encode(name)}: {_encode(record)}" for name, record in records.items())
        yield "\n}"
        opening = ",\n"
    yield "\n}\n"
