"""The forms that a run takes at its end, on request: every one is tried, failures come together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from provml_lightning.errors import ExportError, ProvMLError, ProvMLWarning
from provml_lightning.runtime.faults import warn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provml_lightning.storage.layout import RunLayout

__all__ = ["draw", "exports_of", "try_all"]

Step = Callable[[], object]


def exports_of(layout: RunLayout, *, graph: bool, svg: bool, crate: bool) -> list[Step]:
    """Return what writes a run in other forms: DOT and SVG beside its PROV-JSON, an RO-Crate.

    A picture needs its graph, so ``svg`` writes both. The crate comes last: it holds the others.
    """
    from provml_lightning.exporters.crate import write_crate
    from provml_lightning.exporters.graph import write_dot
    from provml_lightning.exporters.rendering import write_svg

    document = layout.directory / f"prov_{layout.directory.name}.json"
    dot = document.with_suffix(".dot")
    steps: list[Step] = []
    if graph or svg:
        steps.append(lambda: write_dot(document, dot))
    if svg:
        steps.append(lambda: write_svg(dot, document.with_suffix(".svg")))
    if crate:
        steps.append(lambda: write_crate(layout.directory, archive=True))
    return steps


def draw(layout: RunLayout, *, svg: bool) -> None:
    """Write a run's graph, and draw it where ``svg`` says so; what fails is a warning."""
    try:
        try_all(exports_of(layout, graph=True, svg=svg, crate=False))
    except ProvMLError as failure:
        warn(str(failure), ProvMLWarning)


def try_all(steps: Iterable[Step]) -> None:
    """Make every step, whatever the ones before it did.

    Raises:
        ProvMLError: The failure of the one step that failed; of several of one kind, that kind
            with every message; of several kinds, an ExportError.
    """
    failures: list[ProvMLError] = []
    for step in steps:
        try:
            step()
        except ProvMLError as failure:
            failures.append(failure)
    if len(failures) == 1:
        raise failures[0]
    if failures:
        kinds = {type(failure) for failure in failures}
        kind = kinds.pop() if len(kinds) == 1 else ExportError
        told = "; ".join(str(failure) for failure in failures)
        raise kind(f"{len(failures)} things failed at the end of the run: {told}")
