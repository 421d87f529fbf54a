"""The run that made a checkpoint, by the names that its own document gives it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provml_lightning.domain.records import Continued
from provml_lightning.errors import MalformedDocumentError, ProvMLError
from provml_lightning.provenance.statement import state
from provml_lightning.storage.contents import is_settled, read_contents
from provml_lightning.storage.index import read_index
from provml_lightning.storage.layout import RunLayout

__all__ = ["Origin", "has_version", "origin_of"]

_RUN = "provml:RunExecution"
_VERSION = "provml:ModelVersion"
_MOST_RUNS = 32


@dataclass(frozen=True, slots=True)
class Origin:
    """Namespace of a document; in it the ids of a run and, where it has one, of a file."""

    namespace: str
    run: str
    name: str
    file: str | None

    def continued(self, time: int, path: str) -> Continued:
        """Return the record of a run that went on from it at a time [ns], with a file at a path."""
        return Continued(
            time=time,
            path=path,
            namespace=self.namespace,
            run=self.run,
            name=self.name,
            file=self.file,
        )


def origin_of(path: Path, own: Path) -> Origin | None:
    """Return the run that made a file: whose folder it lies in, or whose document names it.

    SLURM's checkpoints lie outside of all runs, so the newest runs of the experiment are looked
    through. None where none of them made it.

    Args:
        path: The file.
        own: The folder of the run that asks, which lies beside those of its experiment.

    Raises:
        StorageError: A run's files cannot be read.
    """
    for folder in path.parents:
        if (folder / "run.json").is_file():
            with suppress(MalformedDocumentError):  # another program's file of that name
                document = _document(RunLayout(folder))
                return _origin(document, path.relative_to(folder).as_posix())
    others = [index for index in own.parent.glob("*/run.json") if index.parent != own]
    newest = sorted(others, key=lambda index: index.stat().st_mtime, reverse=True)
    for index in newest[:_MOST_RUNS]:
        with suppress(ProvMLError, OSError, ValueError):  # one that cannot be read made nothing
            found = _origin(_document(RunLayout(index.parent)), str(path))
            if found is not None and found.file is not None:
                return found
    return None


def _origin(document: Mapping[str, Any], shown_as: str) -> Origin | None:
    run = next(_of_type(document, "activity", _RUN), None)
    if run is None:
        return None
    label = str(document["activity"][run].get("prov:label", run))
    made = {one.get("prov:entity") for one in document.get("wasGeneratedBy", {}).values()}
    file = _version_at(document, shown_as, among=made)
    return Origin(document["prefix"]["default"], run, label, file)


def has_version(layout: RunLayout, shown_as: str) -> bool:
    """Tell whether a run's document has a model version whose file is shown by a path.

    Raises:
        StorageError: The run's files cannot be read.
    """
    return _version_at(_document(layout), shown_as) is not None


def _document(layout: RunLayout) -> Mapping[str, Any]:
    """Return what a run's document says, or would say if it were written now."""
    index = read_index(layout.index)
    if index is not None and is_settled(layout):
        written: Mapping[str, Any] = json.loads((layout.directory / index.document).read_bytes())
        return written
    return state(read_contents(layout))


def _version_at(
    document: Mapping[str, Any], shown_as: str, among: Collection[str] | None = None
) -> str | None:
    """Return the id of the version whose file lay at a path last; of all, or of some."""
    found = None
    for identifier in _of_type(document, "entity", _VERSION):
        is_there = document["entity"][identifier].get("dcterms:identifier") == shown_as
        if is_there and (among is None or identifier in among):
            found = identifier
    return found


def _of_type(document: Mapping[str, Any], kind: str, name: str) -> Iterator[str]:
    for identifier, told in document.get(kind, {}).items():
        types = told.get("prov:type")
        if name in {one.get("$") for one in (types if isinstance(types, list) else [types]) if one}:
            yield identifier
