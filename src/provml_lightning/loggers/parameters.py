"""Hyperparameters as facts of a run."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from provml_lightning.domain.context import Context
from provml_lightning.domain.records import Parameter
from provml_lightning.domain.redaction import safe_value
from provml_lightning.domain.values import Plain, flatten
from provml_lightning.errors import RecordError, StorageError
from provml_lightning.loggers.stages import SANITY_CHECK
from provml_lightning.runtime.run import Run
from provml_lightning.storage.contents import read_facts

__all__ = ["keep_hyperparameters", "keep_parameters"]

_TRAINS = frozenset({None, SANITY_CHECK, Context.TRAINING.value})


def keep_parameters(
    run: Run,
    params: Mapping[str, Any] | Namespace | None,
    context: str | None = None,
    source: str | None = None,
) -> None:
    """Tell a run hyperparameters, nested names joined by ``/``."""
    now = time.time_ns()
    for key, value in flatten({} if params is None else params).items():
        kept = safe_value(key, value)
        run.record(Parameter(time=now, key=key, value=kept, context=context, source=source))


def keep_hyperparameters(
    run: Run, params: Mapping[str, Any] | Namespace | None, stage: str | None
) -> None:
    """Tell a run the hyperparameters of a module, of a stage where it is known.

    Where the run has another value already, or nobody can read which one, that of a stage which
    does not train is the stage's.
    """
    told = {} if stage in _TRAINS else _told(run)
    for key, value in flatten({} if params is None else params).items():
        differs = told is None or (key in told and told[key] != safe_value(key, value))
        keep_parameters(run, {key: value}, stage if differs else None)


def _told(run: Run) -> dict[str, Plain] | None:
    """Return the run's own parameters as all of its processes told them last, None if unreadable.

    Raises:
        RecordError: They cannot be read and the run is strict.
    """
    try:
        facts = list(read_facts(run.layout))
    except (StorageError, OSError) as error:
        told = f"what a training had cannot be compared, so those of a test stand apart: {error}"
        run.excuse("hyperparameters", RecordError(told))
        return None
    return {
        record.key: record.value
        for _, record in facts
        if isinstance(record, Parameter) and record.context is None and record.source is None
    }
