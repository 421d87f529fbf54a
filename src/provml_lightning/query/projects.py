"""The runs of a project: every folder below a path that is one."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from provml_lightning.errors import RecordNotFoundError
from provml_lightning.query.documents import is_document_name

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["list_provjson_in_proj", "list_runs_in_proj"]

_DIGITS = re.compile(r"(\d+)", re.ASCII)


def list_runs_in_proj(path: str | Path) -> list[Path]:
    """Return the folders of the runs at any depth below a folder; ``a_2`` before ``a_10``.

    A run is a folder with a journal of ours or with a ``prov_*.json`` of any tool. Links and
    hidden folders are not followed, and nothing is looked for inside a run.

    Raises:
        RecordNotFoundError: There is no such folder.
    """
    return [Path(folder) for folder, _ in _runs(path)]


def list_provjson_in_proj(path: str | Path) -> list[Path]:
    """Return the PROV-JSON files of those runs; a run that was killed may have none yet.

    Raises:
        RecordNotFoundError: There is no such folder.
    """
    return [Path(folder, name) for folder, names in _runs(path) for name in names]


def _runs(path: str | Path) -> list[tuple[str, list[str]]]:
    if not os.path.isdir(path):  # noqa: PTH112  as fast as the scan that follows
        raise RecordNotFoundError(f"there is no folder {str(path)!r} (from {Path.cwd()})")
    return sorted(_walk(os.fspath(path)), key=lambda run: _naturally(run[0]))


def _walk(top: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each run's folder and the names of its documents."""
    ahead = [top]
    while ahead:
        folder = ahead.pop()
        folders, files = _listing(folder)
        documents = sorted(filter(is_document_name, files), key=_naturally)
        if documents or ("journal" in folders and _has_journal(folder)):
            yield folder, documents
        else:
            ahead += [os.path.join(folder, name) for name in folders if name[0] != "."]  # noqa: PTH118


def _listing(folder: str) -> tuple[list[str], list[str]]:
    folders: list[str] = []
    files: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    files.append(entry.name)
    except OSError:  # not ours to read, or gone since: it holds no run for us
        return [], []
    return folders, files


def _has_journal(folder: str) -> bool:
    from provml_lightning.storage.layout import RunLayout

    return RunLayout(Path(folder)).is_run()


def _naturally(name: str) -> list[tuple[int, int, str]]:
    """Order digits by their number."""
    parts = enumerate(_DIGITS.split(name))
    return [(0, int(part), part) if place % 2 else (1, 0, part) for place, part in parts]
