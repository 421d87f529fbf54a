"""What lies in files: who made it, who used it, and what became of it."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING

from provml_lightning.provenance.document import literal
from provml_lightning.provenance.scope import Placed
from provml_lightning.provenance.vocabulary import ORIGIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from provml_lightning.domain.records import (
        Artifact,
        Continued,
        FileDeleted,
        FileUsed,
        Model,
        ModelVersion,
        StoredFile,
    )
    from provml_lightning.provenance.scope import Scope

    Kept = Artifact | Model | ModelVersion

__all__ = ["attach", "place", "state_deletions", "state_origins", "state_uses"]


def attach(scope: Scope, entity: str, state: Sequence[Kept]) -> None:
    """State every use of an entity, or that it was made, which happens once.

    Source:
        PROV-CONSTRAINTS 24, unique generation.
    """
    if not state[0].is_input:
        scope.generated(entity, state[0].context, state[0].time, "output")
        return
    for told in state:
        scope.used(entity, told.context, told.time, "input")


def place(scope: Scope, entity: str, file: StoredFile | None, state: Sequence[Kept]) -> None:
    """Remember which file an entity is."""
    if file is None:
        return
    times = [told.time for told in state]
    scope.placed.append(Placed(entity, state[0].context, file, min(times), max(times)))


def state_uses(scope: Scope, used: Iterable[tuple[int, FileUsed]]) -> None:
    """State that contexts used files which the document has already."""
    places = _places(scope)
    for _, told in used:
        found = _lying(places, told.path, told.time)
        if found is not None:
            scope.used(found.entity, told.context, told.time, "input")


def state_deletions(scope: Scope, deleted: Iterable[tuple[int, FileDeleted]]) -> None:
    """State that files which were deleted, or overwritten with other bytes, are no more.

    Source:
        PROV-DM 5.1.8 (invalidation); what was told of it afterwards says that it still was.
    """
    places = _places(scope)
    gone: set[str] = set()
    for _, told in deleted:
        found = _lying(places, told.path, told.time)
        if found is not None and found.entity not in gone and found.last <= told.time:
            gone.add(found.entity)
            scope.invalidated(found.entity, told.context, told.time)
    for there in places.values():
        for before, after in pairwise(there):
            kept = before.entity in gone or _same_bytes(before.file, after.file)
            if not kept and before.last <= after.first:
                scope.invalidated(before.entity, after.context, after.first)


def state_origins(scope: Scope, continued: Iterable[tuple[int, Continued]]) -> None:
    """State the runs, and their files, that this run went on from; they keep their own IRIs.

    They have no type here, since this document tells of one run alone.

    Source:
        PROV-DM 5.1.5 (communication), 5.2.1 (derivation).
    """
    places = _places(scope)
    prefixes: dict[str, str] = {}
    told_of: set[tuple[str, str]] = set()
    for _, told in continued:
        number = prefixes.setdefault(told.namespace, "" if not prefixes else str(len(prefixes) + 1))
        prefix = ORIGIN + number
        scope.document.declare(prefix, told.namespace)
        run, own = f"{prefix}:{told.run}", _lying(places, told.path, told.time)
        if (scope.run, run) not in told_of:
            told_of.add((scope.run, run))
            _state_origin(scope, run, told.name)
        if told.file is None or own is None:
            continue
        theirs = f"{prefix}:{told.file}"
        if theirs not in {known for _, known in told_of}:
            scope.document.element("entity", theirs, {"prov:label": literal(told.path)})
        if (own.entity, theirs) not in told_of:
            told_of.add((own.entity, theirs))
            scope.derived(own.entity, theirs)


def _state_origin(scope: Scope, run: str, name: str) -> None:
    scope.document.element("activity", run, {"prov:label": literal(name)})
    relation = {"prov:informed": scope.activity(None), "prov:informant": run}
    scope.document.relate("wasInformedBy", relation)


def _places(scope: Scope) -> dict[str, list[Placed]]:
    """Return what lay at each path, in the order in which it was put there."""
    found: dict[str, list[Placed]] = {}
    for placed in sorted(scope.placed, key=lambda one: one.first):
        found.setdefault(placed.file.path, []).append(placed)
    return found


def _lying(places: dict[str, list[Placed]], path: str, time: int) -> Placed | None:
    """Return what lay at a path at a time."""
    there = places.get(path, [])
    index = bisect_right(there, time, key=lambda one: one.first)
    return there[index - 1] if index else None


def _same_bytes(one: StoredFile, other: StoredFile) -> bool:
    return one.sha256 is not None and one.sha256 == other.sha256
