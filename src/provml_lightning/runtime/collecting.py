"""The runs of a project, or of one experiment of it, as one document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from provml_lightning.domain.names import folder_name
from provml_lightning.exporters.collection import write_collection
from provml_lightning.query.projects import list_provjson_in_proj, list_runs_in_proj
from provml_lightning.storage.index import read_index

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["collect", "unify"]


def collect(places: Iterable[Path], target: Path, *, merged: bool = False) -> Path:
    """Write the documents of runs, projects and PROV-JSON files into one.

    Raises:
        ExportError: There is nothing to collect, or a file cannot be read or written.
        MalformedDocumentError: A file is not PROV-JSON.
    """
    sources = [source for place in places for source in _documents(Path(place))]
    others = [source for source in sources if source.absolute() != target.absolute()]
    return write_collection(others, target, merged=merged)


def unify(directory: Path) -> Path:
    """Write the documents of all runs of a run's experiment into one, beside them."""
    own = read_index(directory / "run.json")
    experiment = own.experiment if own else directory.name
    project = directory.parent
    runs = [run for run in list_runs_in_proj(project) if _experiment(run) == experiment]
    return write_collection(runs, project / f"collection_{folder_name(experiment)}.json")


def _experiment(run: Path) -> str | None:
    index = read_index(run / "run.json")
    return None if index is None else index.experiment


def _documents(place: Path) -> list[Path]:
    """Return what to read: a run of ours by its folder, since a killed one has no document yet."""
    if place.is_file() or (place / "run.json").exists():
        return [place]
    return [
        source
        for run in list_runs_in_proj(place)
        for source in ([run] if (run / "run.json").exists() else list_provjson_in_proj(run))
    ]
