"""What a run's files hold, stated in W3C PROV: a pure function, so that the live path, the end of a
run and the recovery of a killed one say the same.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, TypeVar

from provml_lightning.domain import records
from provml_lightning.provenance.activities import state_run
from provml_lightning.provenance.artifacts import state_artifacts, state_models
from provml_lightning.provenance.calls import state_calls
from provml_lightning.provenance.document import Document
from provml_lightning.provenance.entities import state_datasets, state_parameters
from provml_lightning.provenance.files import state_deletions, state_origins, state_uses
from provml_lightning.provenance.items import state_items
from provml_lightning.provenance.measures import state_measures
from provml_lightning.provenance.metrics import state_metrics
from provml_lightning.provenance.scope import Scope
from provml_lightning.provenance.timeline import first_opened, intervals
from provml_lightning.provenance.versions import state_model_versions
from provml_lightning.provenance.vocabulary import document_namespace, run_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provml_lightning.domain.reading import RunContents
    from provml_lightning.provenance.timeline import Interval

__all__ = ["state"]

R = TypeVar("R", bound=records.Record)


def state(
    contents: RunContents, spans: Mapping[str | None, Interval] | None = None
) -> dict[str, Any]:
    """Return a run as a PROV-JSON document.

    The same contents give the same document: nothing is asked from the clock or the machine.

    Args:
        contents: What the run's files hold.
        spans: Its :func:`~provml_lightning.provenance.timeline.intervals`, if they are known.
    """
    opened = first_opened(contents)
    run = run_name(opened) if opened else contents.directory
    identity = opened.uuid if opened else _identity(contents)
    namespace = opened.namespace if opened else None
    document = Document(document_namespace(namespace, run, identity))
    scope = Scope(document, run, intervals(contents) if spans is None else spans)
    state_run(scope, contents, opened)
    state_parameters(scope, _all(contents, records.Parameter))
    state_items(scope, _all(contents, records.Item))
    seen = state_datasets(scope, _all(contents, records.Dataset))
    state_artifacts(scope, _all(contents, records.Artifact))
    state_models(scope, _all(contents, records.Model))
    used = list(_all(contents, records.FileUsed))
    state_model_versions(scope, _all(contents, records.ModelVersion), seen, used)
    state_uses(scope, used)
    state_deletions(scope, _all(contents, records.FileDeleted))
    state_origins(scope, _all(contents, records.Continued))
    state_metrics(scope, contents.files, contents.series)
    state_calls(scope, _all(contents, records.FunctionCall), contents.series)
    state_measures(scope, _all(contents, records.PowerMeasure))
    return document.as_dict()


def _all(contents: RunContents, kind: type[R]) -> Iterator[tuple[int, R]]:
    return ((rank, record) for rank, record in contents.records if isinstance(record, kind))


def _identity(contents: RunContents) -> str:
    """Return a UUID for a run whose beginning is lost: of its processes, so always the same."""
    known = [(w.host, w.pid, w.time, w.stem) for w in contents.writers]
    return str(uuid.uuid5(uuid.NAMESPACE_URL, repr((contents.directory, known))))
