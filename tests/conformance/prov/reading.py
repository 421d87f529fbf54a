"""Documents read by the reference library, and told apart."""

from __future__ import annotations

import io
from collections import Counter
from typing import TYPE_CHECKING, Any

from prov.identifier import Identifier
from prov.model import Literal, ProvDocument

from provml_lightning.provenance.provjson import dumps
from provml_lightning.provenance.statement import state

if TYPE_CHECKING:
    from provml_lightning.domain.reading import RunContents

__all__ = ["facts", "parse", "stated"]


def stated(contents: RunContents) -> bytes:
    """Return a run's document as it is written."""
    return dumps(state(contents))


def parse(content: bytes) -> ProvDocument:
    """Read a PROV-JSON with the reference library."""
    return ProvDocument.deserialize(io.BytesIO(content), format="json")


def facts(document: ProvDocument) -> Counter[Any]:
    """Return every record with its typed values.

    Two documents say the same if these are equal. The library's own ``==`` takes no NaN for equal
    to any other, and 1 for equal to ``True``.
    """
    return Counter(
        (
            str(record.get_type()),
            record.identifier.uri if record.identifier else None,
            frozenset((name.uri, _typed(value)) for name, value in record.attributes),
        )
        for record in document.get_records()
    )


def _typed(value: Any) -> tuple[str, ...]:
    if isinstance(value, Literal):
        return "literal", value.value, str(value.datatype and value.datatype.uri)
    if isinstance(value, Identifier):
        return type(value).__name__, value.uri
    return type(value).__name__, repr(value)
