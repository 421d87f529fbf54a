"""Hyperparameters as facts of a run."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from provml_lightning.domain.records import Parameter
from provml_lightning.domain.redaction import safe_value
from provml_lightning.domain.values import flatten
from provml_lightning.runtime.run import Run

__all__ = ["keep_parameters"]


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
