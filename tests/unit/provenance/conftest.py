"""Documents of small runs, with their relations in a form that is easy to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from provml_lightning.provenance.statement import state
from tests.conformance.prov.runs import contents, ended, opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from provml_lightning.domain.records import Record

Statement = dict[str, Any]


class Stated:
    """A document; ``relations`` returns those of a kind as tuples without prefix and ids."""

    def __init__(self, document: Statement) -> None:
        self.document = document
        self.entities = document.get("entity", {})
        self.activities = document["activity"]

    def relations(self, kind: str, *names: str) -> list[tuple[Any, ...]]:
        """Return the named fields of every relation of a kind, in the document's order."""
        found = self.document.get(kind, {}).values()
        return [tuple(one.get(f"prov:{name}") for name in names) for one in found]


@pytest.fixture
def states() -> Callable[..., Stated]:
    """State a run of 60 seconds in which some records were told."""

    def of(*records: Record | tuple[int, Record], **changes: Any) -> Stated:
        return Stated(state(contents(opened(), *records, ended(), **changes)))

    return of
