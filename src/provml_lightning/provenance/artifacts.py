"""Artifacts and models: what lies in files."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from provml_lightning.domain.records import Artifact, Model
from provml_lightning.provenance.files import attach, place
from provml_lightning.provenance.history import histories
from provml_lightning.provenance.scope import described, facts, file_facts
from provml_lightning.provenance.vocabulary import attribute, entity_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from provml_lightning.domain.records import StoredFile
    from provml_lightning.provenance.history import History
    from provml_lightning.provenance.scope import Scope

__all__ = ["state_artifacts", "state_models"]

K = TypeVar("K", Artifact, Model)


def state_artifacts(scope: Scope, artifacts: Iterable[tuple[int, Artifact]]) -> None:
    """State artifacts: what the caller pointed to, and the copy that was derived from it.

    Source:
        PROV-DM 5.2.1 (derivation); one that changed is a revision (5.2.2) of the one before.
    """
    _state_revised(scope, artifacts, lambda told: (told.source,), _state_artifact)


def state_models(scope: Scope, models: Iterable[tuple[int, Model]]) -> None:
    """State models with their numbers, and their layers as entities of their own."""
    _state_revised(scope, models, lambda told: (told.source,), _state_model)


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


def _names(record: Artifact | Model) -> tuple[str | None, ...]:
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
    attach(scope, told, state)
    place(scope, entity, artifact.stored, state)
    return entity


def _state_model(scope: Scope, state: list[Model], history: History[Model]) -> str:
    model = state[0]
    stated = facts(model.attributes) | facts({"rank": history.rank})
    attributes = _described(["provml:Model"], model, stated, model.stored)
    entity = _element(scope, "model", model, history, attributes)
    attach(scope, entity, state)
    place(scope, entity, model.stored, state)
    if model.layers is not None:
        label = PurePosixPath(model.layers.path).name
        own = described("provml:ModelLayers", label, model.context, model.source)
        layers = _element(scope, "layers", model, history, own | file_facts(model.layers))
        scope.generated(layers, model.context, model.time, "output")
        scope.derived(layers, entity)
        place(scope, layers, model.layers, state)
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
