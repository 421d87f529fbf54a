"""What earlier processes of a run told of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.records import FileDeleted, Model, ModelVersion, Record
from provml_lightning.domain.redaction import MASK
from provml_lightning.loggers.lineage.places import Mark, Place, first_look
from provml_lightning.storage.contents import read_facts
from provml_lightning.storage.layout import RunLayout

if TYPE_CHECKING:
    from provml_lightning.domain.values import Plain

__all__ = ["is_model_told", "is_still", "told_before"]


def told_before(layout: RunLayout, source: str) -> dict[str, ModelVersion]:
    """Return what was told last of the checkpoints that should still lie there, by their paths.

    A run that one process alone wrote to has none. Where a path's secrets are masked, nobody can
    look there again.

    Raises:
        StorageError: A journal cannot be read.
    """
    found: dict[str, ModelVersion] = {}
    for record in _told(layout):
        if isinstance(record, FileDeleted):
            found.pop(record.path, None)
        elif (
            isinstance(record, ModelVersion)
            and record.source == source
            and (file := record.stored or record.original) is not None
        ):
            found.pop(file.path, None)  # the order is that in which they were made
            found[file.path] = record
    return {path: told for path, told in found.items() if MASK not in path}


def is_still(told: ModelVersion, place: Place, mark: Mark) -> bool:
    """Tell whether what lies at a place is the checkpoint that was told: as large, and no younger.

    A version's time is not before that of its file.
    """
    file, there = told.stored or told.original, first_look(place, mark)
    return file is None or there is None or (file.size == there.size and mark.changed <= told.time)


def is_model_told(
    layout: RunLayout,
    source: str,
    name: str,
    facts: Mapping[str, Plain],
    layers: Sequence[Mapping[str, Any]],
) -> bool:
    """Tell whether the model of a name was told last with the same numbers and layers.

    Raises:
        StorageError: A journal cannot be read.
    """
    models = [one for one in _told(layout) if isinstance(one, Model)]
    told = [one for one in models if (one.name, one.source) == (name, source)]
    last = told[-1] if told else None
    if last is None or last.attributes != facts or last.layers is None:
        return False
    try:
        before = json.loads((layout.directory / last.layers.path).read_bytes())
    except (OSError, ValueError):  # somebody took it away, or wrote over it
        return False
    return bool(before == json.loads(json.dumps(layers)))


def _told(layout: RunLayout) -> Iterator[Record]:
    """Yield what all processes told, in order; nothing where one alone wrote, which is ours."""
    if len(list(layout.journal_files())) > 1:
        yield from (record for _, record in read_facts(layout))
