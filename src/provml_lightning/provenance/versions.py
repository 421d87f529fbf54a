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
    """State each version, derived from what was told of it; else from the version before it.

    The version before is the one that the training went on from, where it went back to one; and
    the first version after a training data set (or one of the version's own context) was first used
    is derived from that too: the later ones are through it.

    Source:
        PROV-DM 5.2.1 (derivation).
    """
    whole = list(_numbered(_whole(versions)))
    found = histories(whole, lambda told: (*_names(told), told.version, told.source))
    made = [(state[0].time, history, state) for history in found for state in history.states]
    resumed = [(told.time, told) for _, told in used if told.context == _TRAINING]
    sources = _Sources(seen)
    for time, history, state in sorted(made, key=lambda moment: moment[0]):
        while resumed and resumed[0][0] <= time:
            sources.go_back(resumed.pop(0)[1].path)
        version = state[0]
        entity = _state_version(scope, state, history)
        model = history.rank, version.name
        if not version.is_input:
            for source in sources.of(model, version, entity):
                scope.derived(entity, source)
        sources.take(model, version, entity)


class _Sources:
    """What versions are derived from, by what was stated before them."""

    def __init__(self, seen: Sequence[Seen]) -> None:
        self._seen = seen
        self._latest: dict[_Model, str] = {}
        self._data = {one.entity for one in seen}
        self._of_trainers = {one.entity for one in seen if one.source is not None}
        self._known = {time: one.entity for one in seen for time in one.times}
        self._files: dict[str, tuple[_Model, str]] = {}
        self._fed: dict[_Model, set[str]] = {}
        self._data_in: dict[str, set[str]] = {}
        self._told_for: dict[str, set[_Model]] = {}

    def go_back(self, path: str) -> None:
        """Take the version of a file as the newest of its model."""
        if (at := self._files.get(path)) is not None:
            self._latest[at[0]] = at[1]

    def take(self, model: _Model, version: ModelVersion, entity: str) -> None:
        """Take a version as the newest of its model."""
        self._latest[model] = self._known[version.time] = entity
        file = version.stored or version.original
        if file is not None:
            self._files[file.path] = model, entity

    def of(self, model: _Model, version: ModelVersion, entity: str) -> Iterator[str]:
        """Yield what a version is derived from: a version, and data sets that fed none before."""
        fed = self._fed.setdefault(model, set())
        before, data = self._told(version)
        if version.derived is None and model in self._latest:
            before = [self._latest[model]]
        known = set().union(*(self._data_in.get(one, ()) for one in before))
        data = [one for one in data if one not in known]
        for one in data:
            self._told_for.setdefault(one, set()).add(model)
        others = {one for one, models in self._told_for.items() if model not in models}
        if version.derived is not None:
            others |= self._of_trainers
        fed.update(data)
        if version.is_trained:
            data += self._fed_by(version, fed, but=others)
        self._data_in[entity] = known.union(data)
        yield from (*before, *data)

    def _told(self, version: ModelVersion) -> tuple[list[str], list[str]]:
        """Return the versions and the data sets that a version is said to be derived from."""
        times = version.derived or ()
        found = list(dict.fromkeys(self._known[time] for time in times if time in self._known))
        versions = [one for one in found if one not in self._data]
        return versions, [one for one in found if one in self._data]

    def _fed_by(self, version: ModelVersion, fed: set[str], *, but: set[str]) -> Iterator[str]:
        """Yield the data sets that fed a model up to a version, each once, but for some."""
        for one in self._seen:
            if one.time > version.time:
                return
            feeds = one.context is not None and one.context in {version.context, _TRAINING}
            if feeds and one.entity not in fed and one.entity not in but:
                fed.add(one.entity)
                yield one.entity


def _whole(versions: Iterable[tuple[int, ModelVersion]]) -> list[tuple[int, ModelVersion]]:
    """Return each version once, as it was told last: one is what was told with one time."""
    known: dict[tuple[object, ...], tuple[int, ModelVersion]] = {}
    for rank, told in versions:
        identity = (rank, *_names(told), told.version, told.source, told.time)
        known[identity] = rank, replace(told, told=None)
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
