"""A metric's name as callers spell it, in its one spelling."""

from __future__ import annotations

from typing import Any

from provml_lightning.domain.context import canonical_context
from provml_lightning.domain.reading import MetricKey
from provml_lightning.errors import RecordError

__all__ = ["metric_key"]


def metric_key(key: Any, context: Any, source: Any) -> MetricKey:
    """Return the metric that a name, a context and a source stand for.

    Raises:
        RecordError: A part of it is not text, or not valid Unicode.
    """
    return MetricKey(
        _text("name", key),
        None if context is None else canonical_context(_text("context", context)),
        None if source is None else _text("source", source),
    )


def _text(what: str, text: Any) -> str:
    if not isinstance(text, str):
        raise RecordError(f"a metric's {what} must be text, not {type(text).__name__}: {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RecordError(
            f"the metric {what} {text!r} is not valid Unicode ({error.reason})"
        ) from error
    return str.__str__(text)  # what it is, not what a subclass shows
