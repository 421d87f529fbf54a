"""A document while it is stated: where the run's activities are, and what hangs on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provml_lightning.provenance.document import Document, timestamp
from provml_lightning.provenance.vocabulary import activity_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provml_lightning.provenance.timeline import Interval

__all__ = ["Scope"]


@dataclass(frozen=True, slots=True)
class Scope:
    """The document, the run's name, and the intervals of the run (None) and its contexts."""

    document: Document
    run: str
    intervals: Mapping[str | None, Interval]

    def activity(self, context: str | None) -> str:
        """Return the id of a context's activity; of the run's for None."""
        return activity_id(context, self.run)

    def used(self, entity: str, context: str | None, time: int, role: str) -> None:
        """State that a context (the run for None) used an entity.

        Source:
            PROV-DM 5.1.4, usage.
        """
        self.document.relate(
            "used", activity=self.activity(context), entity=entity, time=timestamp(time), role=role
        )

    def generated(self, entity: str, context: str | None, time: int | None, role: str) -> None:
        """State that a context (the run for None) made an entity.

        Source:
            PROV-DM 5.1.3, generation.
        """
        moment = None if time is None else timestamp(time)
        self.document.relate(
            "wasGeneratedBy",
            entity=entity,
            activity=self.activity(context),
            time=moment,
            role=role,
        )

    def derived(self, entity: str, source: str, kind: str | None = None) -> None:
        """State that an entity was made from another.

        Source:
            PROV-DM 5.2.1, derivation; ``kind`` is ``prov:Revision`` or ``prov:PrimarySource``.
        """
        typed = None if kind is None else {"$": kind, "type": "prov:QUALIFIED_NAME"}
        self.document.relate(
            "wasDerivedFrom", generatedEntity=entity, usedEntity=source, type=typed
        )
