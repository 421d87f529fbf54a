"""Tell the current run what went in and came out, and name its contexts."""

from __future__ import annotations

import time
from typing import Any

from provml_lightning.api.records import record_fact
from provml_lightning.domain.context import canonical_context
from provml_lightning.domain.records import ContextDeclared, Item
from provml_lightning.domain.redaction import redact, safe_value
from provml_lightning.errors import RecordError

__all__ = ["log_context", "log_input", "log_output"]


def log_input(
    value: Any, name: str = "input", context: str | None = None, *, source: str | None = None
) -> None:
    """Keep something that went into the run; every call is an entity of its own.

    Numbers, booleans, texts and times keep their type; anything else is kept as its text.

    Args:
        value: Anything.
        name: What to call it, any text.
        context: The context that used it; None for the run itself.
        source: Where it comes from.
    """
    _keep(value, name, context, source, is_output=False)


def log_output(
    value: Any, name: str = "output", context: str | None = None, *, source: str | None = None
) -> None:
    """Keep something that came out of the run; every call is an entity of its own.

    Args:
        value: Anything, kept as :func:`log_input` keeps it.
        name: What to call it, any text.
        context: The context that made it; None for the run itself.
        source: Where it comes from.
    """
    _keep(value, name, context, source, is_output=True)


def log_context(
    context: str, is_subcontext_of: str | None = None, source_of_data: str | None = None
) -> None:
    """Name a context before anything happens in it; it begins now.

    Args:
        context: A :class:`Context` or any text.
        is_subcontext_of: The context that it is a part of; None for the run itself.
        source_of_data: Where its data comes from.

    Raises:
        RecordError: A context cannot be a part of itself.
    """
    inner, outer = canonical_context(context), canonical_context(is_subcontext_of)
    if inner is None or inner == outer:
        raise RecordError(
            f"log_context({context!r}): a context has a name and is no part of itself"
        )
    source = redact(source_of_data) if isinstance(source_of_data, str) else source_of_data
    declared = ContextDeclared(time=time.time_ns(), context=inner, parent=outer, source=source)
    record_fact(declared)


def _keep(
    value: Any, name: str, context: str | None, source: str | None, *, is_output: bool
) -> None:
    kind = type(value)
    record_fact(
        Item(
            time=time.time_ns(),
            name=str(name),
            value=safe_value(str(name), value),
            value_type=f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."),
            context=canonical_context(context),
            source=source,
            is_output=is_output,
        )
    )
