"""Parameters and data sets: one rule a kind of record."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from provml_lightning.provenance.document import literal, timestamp
from provml_lightning.provenance.history import content, histories
from provml_lightning.provenance.scope import described, facts
from provml_lightning.provenance.vocabulary import attribute, entity_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provml_lightning.domain.records import Dataset, Parameter
    from provml_lightning.provenance.history import History
    from provml_lightning.provenance.scope import Scope

__all__ = ["Seen", "state_datasets", "state_parameters"]


class Seen(NamedTuple):
    """A data set that was used.

    Attributes:
        time: When it was first used [ns].
        context: In which context.
        source: Who told of it; None for the user.
        entity: Its entity.
        times: All times at which it was told [ns].
    """

    time: int
    context: str | None
    source: str | None
    entity: str
    times: frozenset[int]


def state_parameters(scope: Scope, parameters: Iterable[tuple[int, Parameter]]) -> None:
    """State each parameter as an entity that the run used (or made, for an output).

    One that was told again with another value is a revision of the one before, and the last is
    marked; told again with the same value it is the same entity.

    Source:
        PROV-DM 5.1.4 (usage), 5.2.2 (revision).
    """
    for history in histories(parameters, lambda told: (told.key, told.context, told.source)):
        earlier: str | None = None
        for number in range(len(history.states)):
            entity = _state_parameter(scope, history, number)
            if earlier is not None:
                scope.derived(entity, earlier, "prov:Revision")
            earlier = entity


def state_datasets(scope: Scope, datasets: Iterable[tuple[int, Dataset]]) -> list[Seen]:
    """State each data set as an entity that its context used; return them by time.

    Other data under the same label are another data set, of which nothing says that it was made
    from the one before; the same ones told again are the same entity.
    """
    seen: list[Seen] = []
    for history in histories(datasets, lambda told: (told.label, told.context, told.source)):
        alike: dict[str, list[Dataset]] = {}
        for state in history.states:
            alike.setdefault(content(state[0]), []).extend(state)
        for records in alike.values():
            first = records[0]
            entity = _state_dataset(scope, first, history)
            for told in records:
                scope.used(entity, told.context, told.time, "input")
            times = frozenset(told.time for told in records)
            seen.append(Seen(min(times), first.context, first.source, entity, times))
    return sorted(seen, key=lambda one: one.time)


def _state_parameter(scope: Scope, history: History[Parameter], number: int) -> str:
    parameter, last = history.states[number][0], len(history.states) - 1
    stated = described("provml:HyperParameter", parameter.key, parameter.context, parameter.source)
    stated["prov:value"] = literal(parameter.value)
    if last:
        stated |= facts({"revision": number + 1, "is_last": number == last})
        stated[attribute("time")] = {"$": timestamp(parameter.time), "type": "xsd:dateTime"}
    stated |= facts({"rank": history.rank})
    identifier = entity_id("param", parameter.context, parameter.key, parameter.source)
    entity = scope.document.element("entity", history.mark(identifier), stated)
    attach = scope.generated if parameter.is_output else scope.used
    attach(entity, parameter.context, parameter.time, "output" if parameter.is_output else "input")
    return entity


def _state_dataset(scope: Scope, dataset: Dataset, history: History[Dataset]) -> str:
    identifier = entity_id("dataset", dataset.context, dataset.label, dataset.source)
    stated = described(
        "provml:Dataset",
        dataset.label,
        dataset.context,
        dataset.source,
        facts(dataset.attributes) | facts({"rank": history.rank}),
    )
    return scope.document.element("entity", history.mark(identifier), stated)
