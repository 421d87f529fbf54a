"""Versions of models: a chain from the first weights to the last."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from provml_lightning.provenance.files import attach, place
from provml_lightning.provenance.history import histories
from provml_lightning.provenance.scope import described, facts, file_facts
from provml_lightning.provenance.vocabulary import entity_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provml_lightning.domain.records import FileUsed, ModelVersion
    from provml_lightning.provenance.entities import Seen
    from provml_lightning.provenance.history import History
    from provml_lightning.provenance.scope import Scope

__all__ = ["state_model_versions"]

_TRAINING = "Training"

# A model is one of a rank's where ranks tell of it otherwise.
_Model = tuple[int | None, str]


def state_model_versions(
    scope: Scope,
    versions: Iterable[tuple[int, ModelVersion]],
    seen: Sequence[Seen],
    used: Iterable[tuple[int, FileUsed]] = (),
) -> None:
    """State each version, derived from the one of the same model before it.

    The version before is the one that the training went on from, where it went back to one; weights
    that began anew have none. The
    first version after a training data set (or one of the version's own context) was first used is
    derived from that too: the later ones are through it.

    Source:
        PROV-DM 5.2.1 (derivation).
    """
    whole = list(_numbered(_whole(versions)))
    found = histories(whole, lambda told: (*_names(told), told.version, told.source))
    made = [(state[0].time, history, state) for history in found for state in history.states]
    resumed = [(told.time, told) for _, told in used if told.context == _TRAINING]
    latest: dict[_Model, str] = {}
    files: dict[str, tuple[_Model, str]] = {}
    fed: dict[_Model, set[str]] = {}
    for time, history, state in sorted(made, key=lambda moment: moment[0]):
        while resumed and resumed[0][0] <= time:
            if (at := files.get(resumed.pop(0)[1].path)) is not None:
                latest[at[0]] = at[1]
        version = state[0]
        entity = _state_version(scope, state, history)
        model = history.rank, version.name
        if version.is_fresh:
            latest.pop(model, None)
            fed.pop(model, None)
        if not version.is_input:
            data = list(_data(version.context, time, seen, fed.setdefault(model, set())))
            for source in [*filter(None, [latest.get(model)]), *data]:
                scope.derived(entity, source)
        latest[model] = entity
        file = version.stored or version.original
        if file is not None:
            files[file.path] = model, entity


def _whole(versions: Iterable[tuple[int, ModelVersion]]) -> list[tuple[int, ModelVersion]]:
    """Return each version once, as it was told last: one is what was told with one time."""
    known: dict[tuple[object, ...], tuple[int, ModelVersion]] = {}
    for rank, told in versions:
        identity = (rank, *_names(told), told.version, told.source, told.time)
        known[identity] = rank, told
    return list(known.values())


def _numbered(versions: Iterable[tuple[int, ModelVersion]]) -> Iterator[tuple[int, ModelVersion]]:
    """Return the versions, those without a number counted on from the model's one before."""
    latest: dict[tuple[int, str], int] = {}
    for rank, told in versions:
        counted = latest.get((rank, told.name), -1) + 1
        number = counted if told.version is None else told.version
        latest[rank, told.name] = number
        yield rank, told if told.version is not None else replace(told, version=number)


def _state_version(scope: Scope, state: list[ModelVersion], history: History[ModelVersion]) -> str:
    version = state[0]
    file = version.stored or version.original
    own = facts(
        {
            "model": version.name,
            "version": version.version,
            "step": version.step,
            "rank": history.rank,
        }
    )
    names = (version.context, version.name, str(version.version), version.source)
    stated = described(
        ["provml:Model", "provml:ModelVersion"],
        f"{version.name}_{version.version}",
        version.context,
        version.source,
        own | facts(version.attributes) | own | file_facts(file),
    )
    identifier = history.mark(entity_id("version", *names))
    entity = scope.document.element("entity", identifier, stated)
    attach(scope, entity, state)
    place(scope, entity, file, state)
    return entity


def _names(version: ModelVersion) -> tuple[str | None, ...]:
    return version.name, version.context, "input" if version.is_input else "output"


def _data(context: str | None, time: int, seen: Sequence[Seen], fed: set[str]) -> Iterator[str]:
    """Return the data sets that fed a model up to a time, each of them once."""
    for first, where, entity in seen:
        if first > time:
            return
        if where is not None and where in {context, _TRAINING} and entity not in fed:
            fed.add(entity)
            yield entity
