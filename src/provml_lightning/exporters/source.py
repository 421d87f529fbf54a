"""Where an exporter takes its facts from: a PROV-JSON file, or the folder of a run in any state."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from provml_lightning.errors import ExportError, MalformedDocumentError
from provml_lightning.storage.index import RunIndex, read_index
from provml_lightning.storage.layout import RunLayout

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["RecordedRun", "load_document", "load_run"]

_LARGEST = 2**30


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run as its files tell it: where it lies, its index, its PROV-JSON."""

    layout: RunLayout
    index: RunIndex
    document: dict[str, Any]


def load_document(source: Path) -> dict[str, Any]:
    """Return the PROV-JSON that a file holds, or that of a run's folder.

    Raises:
        ExportError: There is nothing to read.
        MalformedDocumentError: It is not PROV-JSON.
    """
    return load_run(source).document if source.is_dir() else _read(source)


def load_run(directory: Path) -> RecordedRun:
    """Return a run; where its files say more than its document, what they say, written nowhere.

    Raises:
        ExportError: It is not the folder of a run, or it cannot be read.
        MalformedDocumentError: Its document or its index is damaged.
        StorageError: Its journal cannot be read.
    """
    if directory.is_file():
        raise ExportError(f"{directory} is a file, not the folder of a run (unpack a ZIP first)")
    layout = RunLayout(directory.resolve())
    index = read_index(layout.index)
    if index is None:
        raise ExportError(f"{directory} is not the folder of a run: it has no run.json")
    if _settled(layout, index):
        return RecordedRun(layout, index, _read(layout.directory / index.document))
    return RecordedRun(layout, index, _compiled(layout))


def _settled(layout: RunLayout, index: RunIndex) -> bool:
    from provml_lightning.storage.contents import is_settled

    return is_settled(layout) if layout.is_run() else (layout.directory / index.document).exists()


def _compiled(layout: RunLayout) -> dict[str, Any]:
    from provml_lightning.provenance.statement import state
    from provml_lightning.storage.contents import read_contents

    return state(read_contents(layout))


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        content = json.loads(data.decode("utf-8-sig"))
    except OSError as error:
        raise ExportError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:  # a file that was cut at the limit is no JSON
        raise MalformedDocumentError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise MalformedDocumentError(f"{path} is not a PROV-JSON document: it is no JSON object")
    return content
