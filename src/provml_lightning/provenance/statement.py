"""What a run's files hold, stated in W3C PROV: a pure function, so that the live path, the end of a
run and the recovery of a killed one say the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from provml_lightning.domain import records
from provml_lightning.provenance.activities import state_run
from provml_lightning.provenance.document import Document
from provml_lightning.provenance.entities import (
    state_artifact,
    state_dataset,
    state_model,
    state_model_versions,
    state_parameters,
)
from provml_lightning.provenance.metrics import state_metrics
from provml_lightning.provenance.scope import Scope
from provml_lightning.provenance.timeline import intervals
from provml_lightning.provenance.vocabulary import document_namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from provml_lightning.domain.reading import RunContents

__all__ = ["state"]

R = TypeVar("R", bound=records.Record)


def state(contents: RunContents) -> dict[str, Any]:
    """Return a run as a PROV-JSON document.

    The same contents give the same document: nothing is asked from the clock or the machine.
    """
    opened = _first(contents, records.Opened)
    run = f"{opened.experiment}_{opened.run_id}" if opened else contents.directory
    uuid = opened.uuid if opened else "00000000-0000-0000-0000-000000000000"
    namespace = opened.namespace if opened else None
    document = Document(document_namespace(namespace, run, uuid))
    scope = Scope(document, run, intervals(contents))
    state_run(scope, contents, opened)
    state_parameters(scope, _all(contents, records.Parameter))
    _state_each(scope, contents, records.Dataset, state_dataset)
    _state_each(scope, contents, records.Artifact, state_artifact)
    _state_each(scope, contents, records.Model, state_model)
    state_model_versions(scope, _all(contents, records.ModelVersion))
    state_metrics(scope, contents.files, contents.series)
    return document.as_dict()


def _state_each(
    scope: Scope, contents: RunContents, kind: type[R], rule: Callable[[Scope, R], object]
) -> None:
    for record in _all(contents, kind):
        rule(scope, record)


def _all(contents: RunContents, kind: type[R]) -> Iterable[R]:
    return (record for _, record in contents.records if isinstance(record, kind))


def _first(contents: RunContents, kind: type[R]) -> R | None:
    return next(iter(_all(contents, kind)), None)
