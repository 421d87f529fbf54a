"""Artifacts, models and their versions: what lies in files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from provml_lightning.domain.records import Artifact, Model, ModelVersion
from provml_lightning.provenance.history import histories
from provml_lightning.provenance.scope import Placed, described, facts, file_facts
from provml_lightning.provenance.vocabulary import attribute, entity_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from provml_lightning.domain.records import StoredFile
    from provml_lightning.provenance.entities import Seen
    from provml_lightning.provenance.history import History
    from provml_lightning.provenance.scope import Scope

__all__ = ["state_artifacts", "state_model_versions", "state_models", "state_replacements"]

Kept = Artifact | Model | ModelVersion
K = TypeVar("K", Artifact, Model, ModelVersion)
_TRAINING = "Training"


def state_artifacts(scope: Scope, artifacts: Iterable[tuple[int, Artifact]]) -> None:
    """State artifacts: what the caller pointed to, and the copy that was derived from it.

    Source:
        PROV-DM 5.2.1 (derivation); one that changed is a revision (5.2.2) of the one before.
    """
    _state_revised(scope, artifacts, lambda told: (told.source,), _state_artifact)


def state_models(scope: Scope, models: Iterable[tuple[int, Model]]) -> None:
    """State models with their numbers, and their layers as entities of their own."""
    _state_revised(scope, models, lambda told: (told.source,), _state_model)


def state_model_versions(
    scope: Scope, versions: Iterable[tuple[int, ModelVersion]], seen: Sequence[Seen]
) -> None:
    """State each version, derived from the one of the same model before it.

    The first version after a training data set (or one of the version's own context) was first
    used is derived from that too: the later ones are through it.

    Source:
        PROV-DM 5.2.1 (derivation).
    """
    found = histories(_numbered(versions), lambda told: (*_names(told), told.version, told.source))
    moments = [(state[0].time, history, state) for history in found for state in history.states]
    latest: dict[tuple[int | None, str], str] = {}
    fed: dict[tuple[int | None, str], set[str]] = {}
    for time, history, state in sorted(moments, key=lambda moment: moment[0]):
        version = state[0]
        entity = _state_version(scope, state, history)
        model = history.rank, version.name
        if not version.is_input:
            data = list(_data(version.context, time, seen, fed.setdefault(model, set())))
            for source in [*filter(None, [latest.get(model)]), *data]:
                scope.derived(entity, source)
        latest[model] = entity


def state_replacements(scope: Scope) -> None:
    """State that a file which was overwritten with other bytes is no more.

    Source:
        PROV-DM 5.1.8 (invalidation); what was told of it afterwards says that it still was.
    """
    latest: dict[str, Placed] = {}
    for placed in sorted(scope.placed, key=lambda one: one.first):
        before = latest.get(placed.file.path)
        latest[placed.file.path] = placed
        if before is None or before.file.sha256 == placed.file.sha256:
            continue
        if before.last <= placed.first:
            scope.invalidated(before.entity, placed.context, placed.first)


def _numbered(
    versions: Iterable[tuple[int, ModelVersion]],
) -> Iterator[tuple[int, ModelVersion]]:
    """Return the versions, those without a number counted on from the model's one before."""
    latest: dict[tuple[int, str], int] = {}
    for rank, told in versions:
        counted = latest.get((rank, told.name), -1) + 1
        number = counted if told.version is None else told.version
        latest[rank, told.name] = number
        yield rank, told if told.version is not None else replace(told, version=number)


def _state_revised(
    scope: Scope,
    told: Iterable[tuple[int, K]],
    more: Callable[[K], tuple[str | None, ...]],
    rule: Callable[[Scope, list[K], History[K]], str],
) -> None:
    for history in histories(told, lambda one: (*_names(one), *more(one))):
        earlier: str | None = None
        for state in history.states:
            entity = rule(scope, state, history)
            if earlier is not None:
                scope.derived(entity, earlier, "prov:Revision")
            earlier = entity


def _names(record: Kept) -> tuple[str | None, ...]:
    return record.name, record.context, "input" if record.is_input else "output"


def _state_artifact(scope: Scope, state: list[Artifact], history: History[Artifact]) -> str:
    artifact = state[0]
    kinds = ["provml:Artifact"] + (["provml:Model"] if artifact.is_model else [])
    kinds += [attribute(artifact.category)] if artifact.category else []
    own = facts({"step": artifact.step, "rank": history.rank})
    stated = own | facts(artifact.attributes) | own
    file = artifact.stored or artifact.original
    attributes = _described(kinds, artifact, stated, file)
    told = entity = _element(scope, "artifact", artifact, history, attributes)
    if artifact.stored is not None and artifact.original is not None:
        attributes = _described(kinds, artifact, stated, artifact.original)
        told = _element(scope, "original", artifact, history, attributes)
        scope.generated(entity, None, artifact.time, "copy")
        scope.derived(entity, told)
    _attach(scope, told, state)
    _place(scope, entity, artifact.stored, state)
    return entity


def _state_model(scope: Scope, state: list[Model], history: History[Model]) -> str:
    model = state[0]
    stated = facts(model.attributes) | facts({"rank": history.rank})
    attributes = _described(["provml:Model"], model, stated, model.stored)
    entity = _element(scope, "model", model, history, attributes)
    _attach(scope, entity, state)
    _place(scope, entity, model.stored, state)
    if model.layers is not None:
        label = PurePosixPath(model.layers.path).name
        own = described("provml:ModelLayers", label, model.context, model.source)
        layers = _element(scope, "layers", model, history, own | file_facts(model.layers))
        scope.generated(layers, model.context, model.time, "output")
        scope.derived(layers, entity)
        _place(scope, layers, model.layers, state)
    return entity


def _state_version(scope: Scope, state: list[ModelVersion], history: History[ModelVersion]) -> str:
    version = state[0]
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
        own | facts(version.attributes) | own | file_facts(version.stored),
    )
    identifier = history.mark(entity_id("version", *names))
    entity = scope.document.element("entity", identifier, stated)
    _attach(scope, entity, state)
    _place(scope, entity, version.stored, state)
    return entity


def _described(
    kinds: list[str], record: Artifact | Model, stated: dict[str, Any], file: StoredFile | None
) -> dict[str, Any]:
    """Describe a file; what is known of it wins over what the user says of it."""
    attributes = stated | file_facts(file)
    return described(kinds, record.name, record.context, record.source, attributes)


def _element(
    scope: Scope,
    kind: str,
    record: Artifact | Model,
    history: History[Any],
    attributes: dict[str, Any],
) -> str:
    identifier = history.mark(entity_id(kind, record.context, record.name, record.source))
    return scope.document.element("entity", identifier, attributes)


def _attach(scope: Scope, entity: str, state: Sequence[Kept]) -> None:
    """State every use of an entity, or that it was made, which happens once.

    Source:
        PROV-CONSTRAINTS 24, unique generation.
    """
    if not state[0].is_input:
        scope.generated(entity, state[0].context, state[0].time, "output")
        return
    for told in state:
        scope.used(entity, told.context, told.time, "input")


def _place(scope: Scope, entity: str, file: StoredFile | None, state: Sequence[Kept]) -> None:
    if file is None:
        return
    times = [told.time for told in state]
    scope.placed.append(Placed(entity, state[0].context, file, min(times), max(times)))


def _data(context: str | None, time: int, seen: Sequence[Seen], fed: set[str]) -> Iterator[str]:
    """Return the data sets that fed a model up to a time, each of them once."""
    for first, place, entity in seen:
        if first > time:
            return
        if place is not None and place in {context, _TRAINING} and entity not in fed:
            fed.add(entity)
            yield entity
