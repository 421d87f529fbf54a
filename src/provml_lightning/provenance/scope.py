"""A document while it is stated: where the run's activities are, and what hangs on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from provml_lightning.provenance.document import Document, literal, qualified, timestamp
from provml_lightning.provenance.vocabulary import activity_id, attribute

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provml_lightning.domain.records import StoredFile
    from provml_lightning.domain.values import Plain
    from provml_lightning.provenance.timeline import Interval

__all__ = ["Placed", "Scope", "described", "facts", "file_facts"]


@dataclass(frozen=True, slots=True)
class Placed:
    """A file of the run's, the entity that it is, and when that was told first and last [ns]."""

    entity: str
    context: str | None
    file: StoredFile
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Scope:
    """The document, the run's name, the intervals of the run (None) and its contexts, its files."""

    document: Document
    run: str
    intervals: Mapping[str | None, Interval]
    placed: list[Placed] = field(default_factory=list)

    def activity(self, context: str | None) -> str:
        """Return the id of a context's activity; of the run's for None."""
        return activity_id(context, self.run)

    def used(self, entity: str, context: str | None, time: int, role: str) -> None:
        """State that a context (the run for None) used an entity, in the time that it lasts.

        Source:
            PROV-DM 5.1.4, usage.
        """
        interval = self.intervals.get(context)
        moment = time if interval is None else interval.nearest(time)
        self.document.relate(
            "used",
            {
                "prov:activity": self.activity(context),
                "prov:entity": entity,
                "prov:time": timestamp(moment),
                "prov:role": role,
            },
        )

    def generated(self, entity: str, context: str | None, time: int | None, role: str) -> None:
        """State that a context (the run for None) made an entity.

        Source:
            PROV-DM 5.1.3, generation.
        """
        stated = {"prov:entity": entity, "prov:activity": self.activity(context)}
        if time is not None:
            stated["prov:time"] = timestamp(time)
        stated["prov:role"] = role
        self.document.relate("wasGeneratedBy", stated)

    def invalidated(self, entity: str, context: str | None, time: int) -> None:
        """State that a context (the run for None) overwrote an entity.

        Source:
            PROV-DM 5.1.8, invalidation.
        """
        self.document.relate(
            "wasInvalidatedBy",
            {
                "prov:entity": entity,
                "prov:activity": self.activity(context),
                "prov:time": timestamp(time),
            },
        )

    def derived(self, entity: str, source: str, kind: str | None = None) -> None:
        """State that an entity was made from another.

        Source:
            PROV-DM 5.2.1, derivation; ``kind`` is ``prov:Revision`` or ``prov:PrimarySource``.
        """
        typed = {} if kind is None else {"prov:type": qualified([kind])}
        self.document.relate(
            "wasDerivedFrom",
            {"prov:generatedEntity": entity, "prov:usedEntity": source, **typed},
        )


def described(
    kinds: str | list[str],
    label: str,
    context: str | None,
    source: str | None,
    attributes: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what every entity says of itself, and behind it ``attributes`` of other names."""
    own: dict[str, Any] = {
        "prov:type": qualified([kinds] if isinstance(kinds, str) else kinds),
        "prov:label": literal(label),
    }
    if context is not None:
        own["yprov:context"] = literal(context)
    if source is not None:
        own["yprov:source"] = literal(source)
    return own if attributes is None else {**own, **attributes, **own}


def facts(values: Mapping[str, Plain | None]) -> dict[str, Any]:
    """Return facts as attributes; those that are None are left out."""
    return {attribute(name): literal(v) for name, v in values.items() if v is not None}


def file_facts(stored: StoredFile | None) -> dict[str, Any]:
    """Return what is known of a file; its path as Dublin Core's identifier, as the peer does."""
    if stored is None:
        return {}
    files = None if stored.media_type != "inode/directory" else stored.files
    return {
        "dcterms:identifier": literal(stored.path),
        "dcterms:format": literal(stored.media_type),
        **facts({"file_size": stored.size, "sha256": stored.sha256, "files": files}),
    }
