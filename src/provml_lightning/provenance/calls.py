"""Calls of tracked functions: one activity a function and context, however many calls it had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.records import FunctionCall
from provml_lightning.provenance.document import literal, qualified, timestamp
from provml_lightning.provenance.scope import facts
from provml_lightning.provenance.vocabulary import attribute, entity_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from provml_lightning.domain.reading import MetricSeries
    from provml_lightning.provenance.scope import Scope

__all__ = ["state_calls"]

_MOST_SHOWN = 40


def state_calls(
    scope: Scope, calls: Iterable[tuple[int, FunctionCall]], series: Sequence[MetricSeries]
) -> None:
    """State each tracked function as an activity from its first call to the end of its last.

    How often it was called, how often it failed, the shortest and the longest call come from its
    metrics, which have every call; the first calls are attributes.

    Source:
        PROV-DM 5.1.2 (activity), 5.1.5 (communication).
    """
    told: dict[tuple[str, str | None], list[FunctionCall]] = {}
    for _, call in calls:
        told.setdefault((call.function, call.context), []).append(call)
    known = {one.name: one for one in series}
    for (function, context), first in told.items():
        _state_function(scope, function, context, sorted(first, key=lambda one: one.time), known)


def _state_function(
    scope: Scope,
    function: str,
    context: str | None,
    told: Sequence[FunctionCall],
    known: dict[MetricKey, MetricSeries],
) -> None:
    every = known.get(MetricKey(function, context, FunctionCall.SOURCE))
    failed = known.get(MetricKey(f"{function}/failed", context, FunctionCall.SOURCE))
    stated: dict[str, Any] = {
        "prov:startTime": timestamp(told[0].time),
        "prov:type": qualified(["provml:FunctionExecution"]),
        "prov:label": literal(function),
        **facts(
            {
                "context": context,
                "calls": every.rows if every else len(told),
                "failed_calls": failed.rows if failed else 0,
                "shortest_seconds": every.minimum if every else None,
                "longest_seconds": every.maximum if every else None,
            }
        ),
        attribute("call"): [literal(_sentence(call)) for call in told[:_MOST_SHOWN]],
    }
    during = scope.intervals[context]
    if every is not None and during.end is not None:
        ended = max(told[0].time, during.nearest(every.last_time))
        stated["prov:endTime"] = timestamp(ended)
    activity = scope.document.element("activity", entity_id("call", context, function), stated)
    relation = {"prov:informed": activity, "prov:informant": scope.activity(context)}
    scope.document.relate("wasInformedBy", relation)


def _sentence(call: FunctionCall) -> str:
    """Return a call as one reads it in a program."""
    arguments = ", ".join(f"{name}={text}" for name, text in call.arguments.items())
    if call.error_type is not None:
        came = f" raised {call.error_type}: {call.error_message}"
    else:
        came = "" if call.result is None else f" -> {call.result}"
    return f"{timestamp(call.time)} {call.seconds:.6f} s ({arguments}){came}"
