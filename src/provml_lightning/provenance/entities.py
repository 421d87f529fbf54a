"""Parameters, data sets, models, versions and artifacts: one rule a kind of record."""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from provml_lightning.provenance.document import literal, qualified, timestamp
from provml_lightning.provenance.vocabulary import attribute, entity_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from provml_lightning.domain.records import (
        Artifact,
        Dataset,
        Model,
        ModelVersion,
        Parameter,
        StoredFile,
    )
    from provml_lightning.domain.values import Plain
    from provml_lightning.provenance.scope import Scope

__all__ = [
    "state_artifact",
    "state_dataset",
    "state_model",
    "state_model_versions",
    "state_parameters",
]


def state_parameters(scope: Scope, parameters: Iterable[Parameter]) -> None:
    """State each parameter as an entity that the run used (or made, for an output).

    One that was told again with another value is a revision of the one before, and the last is
    marked; told again with the same value it is the same entity.

    Source:
        PROV-DM 5.1.4 (usage), 5.2.2 (revision).
    """
    told: dict[tuple[str, str | None, str | None], list[Parameter]] = defaultdict(list)
    for parameter in parameters:
        values = told[(parameter.key, parameter.context, parameter.source)]
        if not values or not _same(values[-1], parameter):
            values.append(parameter)
    for values in told.values():
        earlier: str | None = None
        for number, parameter in enumerate(values, start=1):
            revision = (number, len(values)) if len(values) > 1 else None
            entity = _state_parameter(scope, parameter, revision)
            if earlier is not None:
                scope.derived(entity, earlier, "prov:Revision")
            earlier = entity


def state_dataset(scope: Scope, dataset: Dataset) -> None:
    """State a data set as an entity that its context used."""
    identifier = entity_id("dataset", dataset.context, dataset.label, dataset.source)
    stated = _described("provml:Dataset", dataset.label, dataset.context, dataset.source)
    entity = scope.document.element("entity", identifier, stated | _facts(dataset.attributes))
    scope.used(entity, dataset.context, dataset.time, "input")


def state_artifact(scope: Scope, artifact: Artifact) -> None:
    """State an artifact: what the caller pointed to, and the copy that was derived from it."""
    kinds = ["provml:Artifact"] + (["provml:Model"] if artifact.is_model else [])
    described = _described(kinds, artifact.name, artifact.context, artifact.source)
    described |= _facts({"step": artifact.step}) | _facts(artifact.attributes)
    names = (artifact.context, artifact.name, artifact.source)
    original = copy = None
    if artifact.original is not None:
        kind = "original" if artifact.stored else "artifact"
        stated = described | _file(artifact.original)
        original = scope.document.element("entity", entity_id(kind, *names), stated)
    if artifact.stored is not None:
        stated = described | _file(artifact.stored)
        copy = scope.document.element("entity", entity_id("artifact", *names), stated)
    told = original or copy
    if told is not None:
        _attach(scope, told, artifact)
    if original is not None and copy is not None:
        scope.generated(copy, None, artifact.time, "copy")
        scope.derived(copy, original)


def state_model(scope: Scope, model: Model) -> None:
    """State a model with its numbers, and its layers as an entity of their own."""
    identifier = entity_id("model", model.context, model.name, model.source)
    stated = _described("provml:Model", model.name, model.context, model.source)
    stated |= _facts(model.attributes) | _file(model.stored)
    entity = scope.document.element("entity", identifier, stated)
    _attach(scope, entity, model)
    if model.layers is not None:
        label = PurePosixPath(model.layers.path).name
        layers = _described("provml:ModelLayers", label, model.context, model.source)
        identifier = entity_id("layers", model.context, model.name, model.source)
        described = scope.document.element("entity", identifier, layers | _file(model.layers))
        scope.generated(described, model.context, model.time, "output")
        scope.derived(described, entity)


def state_model_versions(scope: Scope, versions: Iterable[ModelVersion]) -> None:
    """State each version, derived from the version of the same model before it.

    Source:
        PROV-DM 5.2.1 (derivation).
    """
    latest: dict[str, str] = {}
    for version in versions:
        label = f"{version.name}_{version.version}"
        identifier = entity_id("version", version.context, version.name, str(version.version))
        kinds = ["provml:Model", "provml:ModelVersion"]
        stated = _described(kinds, label, version.context, version.source)
        facts: dict[str, Plain | None] = {
            "model": version.name,
            "version": version.version,
            "step": version.step,
        }
        stated |= _facts(facts) | _facts(version.attributes) | _file(version.stored)
        entity = scope.document.element("entity", identifier, stated)
        _attach(scope, entity, version)
        if version.name in latest and not version.is_input:
            scope.derived(entity, latest[version.name])
        latest[version.name] = entity


def _state_parameter(scope: Scope, parameter: Parameter, revision: tuple[int, int] | None) -> str:
    stated = _described("provml:HyperParameter", parameter.key, parameter.context, parameter.source)
    stated["prov:value"] = literal(parameter.value)
    if revision is not None:
        number, last = revision
        stated |= _facts({"time": None, "revision": number, "is_last": number == last})
        stated[attribute("time")] = {"$": timestamp(parameter.time), "type": "xsd:dateTime"}
    identifier = entity_id("param", parameter.context, parameter.key, parameter.source)
    entity = scope.document.element("entity", identifier, stated)
    if parameter.is_output:
        scope.generated(entity, parameter.context, parameter.time, "output")
    else:
        scope.used(entity, parameter.context, parameter.time, "input")
    return entity


def _same(one: Parameter, other: Parameter) -> bool:
    """Tell whether two values are one; NaN is NaN, and 1 is neither 1.0 nor True."""
    return type(one.value) is type(other.value) and repr(one.value) == repr(other.value)


def _attach(scope: Scope, entity: str, record: Artifact | Model | ModelVersion) -> None:
    if record.is_input:
        scope.used(entity, record.context, record.time, "input")
    else:
        scope.generated(entity, record.context, record.time, "output")


def _described(
    kinds: str | list[str], label: str, context: str | None, source: str | None
) -> dict[str, Any]:
    return {
        "prov:type": qualified([kinds] if isinstance(kinds, str) else kinds),
        "prov:label": label,
        "yprov:context": context,
        "yprov:source": source,
    }


def _facts(values: Mapping[str, Plain | None]) -> dict[str, Any]:
    return {attribute(name): literal(v) for name, v in values.items() if v is not None}


def _file(stored: StoredFile | None) -> dict[str, Any]:
    """Return what is known of a file; its path as Dublin Core's identifier, as the peer does."""
    if stored is None:
        return {}
    files = None if stored.media_type != "inode/directory" else stored.files
    return {
        "dcterms:identifier": stored.path,
        "dcterms:format": stored.media_type,
        **_facts({"file_size": stored.size, "sha256": stored.sha256, "files": files}),
    }
