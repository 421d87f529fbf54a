"""Which context is a part of which, and what metrics came to in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.domain.records import ContextDeclared, FinalMetric

if TYPE_CHECKING:
    from provml_lightning.domain.reading import RunContents
    from provml_lightning.domain.values import Plain

__all__ = ["final_values", "outer_contexts"]


def outer_contexts(contents: RunContents) -> dict[str, ContextDeclared]:
    """Return how each context was declared that is a part of another, or has a source of its own.

    A stage of a Trainer is declared when it begins and ends; that says nothing of where it belongs.
    """
    return {
        record.context: record
        for _, record in contents.records
        if isinstance(record, ContextDeclared) and (record.parent or record.source)
    }


def final_values(contents: RunContents) -> dict[str, Plain | None]:
    """Return what the final metrics came to, as ``final_<operation>_<metric>``.

    One that was not folded, since its function died with its process, is absent.
    """
    return {
        f"final_{record.operation}_{record.metric}": record.value
        for _, record in contents.records
        if isinstance(record, FinalMetric) and record.value is not None
    }
