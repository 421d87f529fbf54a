"""What pieces of code used: one activity a measure, with what it ran and what that cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provml_lightning.provenance.document import literal, qualified, timestamp
from provml_lightning.provenance.scope import facts
from provml_lightning.provenance.vocabulary import entity_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provml_lightning.domain.records import PowerMeasure
    from provml_lightning.domain.values import Plain
    from provml_lightning.provenance.scope import Scope

__all__ = ["state_measures"]

_NANO = 1_000_000_000


def state_measures(scope: Scope, measures: Iterable[tuple[int, PowerMeasure]]) -> None:
    """State each measure of a PowerMeter as an activity that the run informed.

    It used the algorithm, and the data where something was told of them; the energy is an entity
    that it generated.

    Source:
        PROV-DM 5.1.2 (activity), 5.1.3 (generation), 5.1.4 (usage), 5.1.5 (communication).
    """
    entities: dict[tuple[str, str], str] = {}
    for rank, measure in sorted(measures, key=lambda told: (told[1].time, told[0])):
        _state_measure(scope, rank, measure, entities)


def _state_measure(
    scope: Scope, rank: int, measure: PowerMeasure, entities: dict[tuple[str, str], str]
) -> None:
    during = scope.intervals[None]
    # Clocks step back now and then; an activity lies within its run all the same.
    ended = max(measure.time, during.nearest(measure.time + round(measure.seconds * _NANO)))
    began, over = timestamp(measure.time), timestamp(ended)
    name = f"{measure.package}: {measure.algorithm}"
    names = (measure.package, measure.algorithm)
    own: dict[str, Plain | None] = {
        "step": measure.step,
        "seconds": measure.seconds,
        "rank": rank or None,
    }
    own |= {"comments": measure.told.get("comments"), "error_type": measure.error_type}
    own = {**measure.measured, **own}
    activity = scope.document.element(
        "activity",
        entity_id("measure", None, *names),
        {
            "prov:startTime": began,
            **({} if during.end is None else {"prov:endTime": over}),
            **_described("provml:PowerMeasure", name),
            **facts(own),
        },
    )
    relate = scope.document.relate
    relate("wasInformedBy", {"prov:informed": activity, "prov:informant": scope.activity(None)})
    for role, entity in _used(scope, measure, name, entities):
        usage = {"prov:activity": activity, "prov:entity": entity, "prov:time": began}
        relate("used", {**usage, "prov:role": role})
    joules = measure.measured.get("energy_consumed")
    if joules is not None:
        stated = {**_described("provml:EnergyUse", name), "prov:value": literal(joules)}
        stated |= facts({"unit": "J", "rank": rank or None})
        energy = scope.document.element("entity", entity_id("energy", None, *names), stated)
        generation = {"prov:entity": energy, "prov:activity": activity, "prov:time": over}
        relate("wasGeneratedBy", {**generation, "prov:role": "output"})


def _used(
    scope: Scope, measure: PowerMeasure, name: str, entities: dict[tuple[str, str], str]
) -> list[tuple[str, str]]:
    """Return the roles and entities of what a measure used; the same thing is one entity."""
    told = measure.told
    stated: dict[str, Plain | None] = {
        "package": measure.package,
        "algorithm_params": told.get("algorithm_params"),
    }
    place = entity_id("algorithm", None, measure.package, measure.algorithm)
    parts = [("algorithm", place, "provml:Algorithm", name, stated)]
    if texts := [str(told[key]) for key in ("data_type", "data_shape") if key in told]:
        stated = {key: told.get(key) for key in ("data_type", "data_shape")}
        label = " ".join(texts)
        parts.append(
            ("input", entity_id("data", None, label), "provml:MeasuredData", label, stated)
        )
    found = []
    for role, place, kind, label, stated in parts:
        key = (place, repr(stated))
        if key not in entities:
            attributes = {**_described(kind, label), **facts(stated)}
            entities[key] = scope.document.element("entity", place, attributes)
        found.append((role, entities[key]))
    return found


def _described(kind: str, label: str) -> dict[str, Any]:
    return {"prov:type": qualified([kind]), "prov:label": literal(label)}
