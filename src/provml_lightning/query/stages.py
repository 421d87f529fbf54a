"""The contexts of a run: when each was, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provml_lightning.query.costs import CostFacts, costs_of
from provml_lightning.query.heads import facts_of, moment_of, seconds_between

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from provml_lightning.query.documents import Document

__all__ = ["StageFacts", "stages_of"]

_KINDS = ("provml:LearningStage", "provml:Context")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFacts:
    """A context of a run.

    Attributes:
        started: When something was first told of it; None where nothing says.
        duration: From there to its last word [s]; None while that may still come.
        costs: Its sums: ``energy``, ``emissions``, FLOPs.
    """

    name: str
    started: datetime | None
    duration: float | None
    costs: tuple[CostFacts, ...]


def stages_of(document: Document) -> Iterator[StageFacts]:
    """Yield the contexts that a document describes, in its order."""
    for element in document.of_kind("activity"):
        if any(document.dialect.has_type(element, kind) for kind in _KINDS):
            told = facts_of(element)
            started, ended = moment_of(told.get("startTime")), moment_of(told.get("endTime"))
            yield StageFacts(
                name=document.dialect.label_of(element),
                started=started,
                duration=seconds_between(started, ended),
                costs=tuple(costs_of(told)),
            )
