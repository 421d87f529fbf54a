"""What went into the run and what came out of it, each told once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.provenance.document import literal
from provml_lightning.provenance.scope import described, facts
from provml_lightning.provenance.vocabulary import entity_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provml_lightning.domain.records import Item
    from provml_lightning.provenance.scope import Scope

__all__ = ["state_items"]


def state_items(scope: Scope, items: Iterable[tuple[int, Item]]) -> None:
    """State each item as an entity of its own, however often its name was told.

    Source:
        PROV-DM 5.1.3 (generation), 5.1.4 (usage).
    """
    for number, (rank, item) in enumerate(items):
        kind = "provml:Output" if item.is_output else "provml:Input"
        told = facts({"value_type": item.value_type, "order": number, "rank": rank or None})
        stated = described(kind, item.name, item.context, item.source, told)
        stated["prov:value"] = literal(item.value)
        role = "output" if item.is_output else "input"
        identifier = entity_id(role, item.context, item.name, item.source)
        entity = scope.document.element("entity", identifier, stated)
        if item.is_output:
            scope.generated(entity, item.context, item.time, role)
        else:
            scope.used(entity, item.context, item.time, role)
