"""What pieces of code used while a PowerMeter watched them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from provml_lightning.query.heads import facts_of
from provml_lightning.query.literals import number_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provml_lightning.query.documents import Document

__all__ = ["MeasureFacts", "measures_of"]

_OWN = frozenset({"type", "label", "step", "seconds", "energy_consumed", "emissions"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureFacts:
    """A measure of a PowerMeter; None where it is not known.

    Attributes:
        seconds: How long the code ran [s].
        energy: What it used [J].
        emissions: Of that energy [gCO2eq].
        facts: What else is said of it: the parts of the energy and their sources.
    """

    package: str | None
    algorithm: str
    step: str | None
    seconds: float | None
    energy: float | None
    emissions: float | None
    facts: Mapping[str, Any] = field(default_factory=dict)


def measures_of(document: Document) -> Iterator[MeasureFacts]:
    """Yield the measures that a document states, in its order."""
    packages = _packages(document)
    for element in document.of_kind("activity"):
        if document.dialect.has_type(element, "provml:PowerMeasure"):
            told = facts_of(element)
            package = packages.get(element.id)
            yield MeasureFacts(
                package=package,
                algorithm=document.dialect.label_of(element).removeprefix(f"{package}: "),
                step=text_of(told.get("step")),
                seconds=number_of(told.get("seconds")),
                energy=number_of(told.get("energy_consumed")),
                emissions=number_of(told.get("emissions")),
                facts={name: value for name, value in told.items() if name not in _OWN},
            )


def _packages(document: Document) -> dict[str, str]:
    """Return the package of the algorithm that each measure used."""
    stated = {
        element.id: package
        for element in document.of_kind("entity")
        if document.dialect.has_type(element, "provml:Algorithm")
        and (package := text_of(element.attributes.get("provml:package"))) is not None
    }
    used = document.related("used", "activity", "entity")
    return {activity: stated[entity] for activity, entity in used if entity in stated}
