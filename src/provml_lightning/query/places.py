"""Where a run may be that is not where someone points."""

from __future__ import annotations

from difflib import get_close_matches
from itertools import chain, islice
from typing import TYPE_CHECKING

from provml_lightning.errors import RecordNotFoundError
from provml_lightning.query.documents import is_document_name
from provml_lightning.query.heads import own_layout

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["require_own_run", "require_run"]

_SHOWN = 3
_RUNS = ("*/run.json", "*/prov_*.json", "*/*/run.json", "*/*/prov_*.json")


def require_run(path: Path) -> Path:
    """Return a path that is a run's folder, a document or an archive.

    Raises:
        RecordNotFoundError: It is not; the message says which ones are close.
    """
    if not path.exists():
        raise RecordNotFoundError(f"there is no {str(path)!r}{_close(path)}")
    if path.is_dir() and not _is_run(path):
        below = list(islice(dict.fromkeys(_runs_below(path)), _SHOWN))
        raise RecordNotFoundError(f"{path} is not a run: {_listed(below)}")
    return path


def require_own_run(path: Path) -> Path:
    """Return the folder of a run of ours, given it or its document.

    Raises:
        RecordNotFoundError: There is none; the message says which ones are close.
    """
    found = require_run(path)
    folder = found if found.is_dir() else found.parent
    if own_layout(folder) is None:
        raise RecordNotFoundError(
            f"{path} is no run of this library's: it has no journal to recover anything from"
        )
    return folder


def _is_run(folder: Path) -> bool:
    if (folder / "journal").is_dir():
        return True
    return any(is_document_name(entry.name) for entry in folder.iterdir())


def _runs_below(folder: Path) -> chain[Path]:
    return chain.from_iterable(
        (found.parent for found in folder.glob(pattern)) for pattern in _RUNS
    )


def _listed(runs: list[Path]) -> str:
    if not runs:
        return "it has no journal and no prov_*.json, and no run lies below it"
    shown = ", ".join(repr(str(run)) for run in runs)
    return f"runs lie below it, such as {shown}: pass one of them"


def _close(path: Path) -> str:
    """Return the names that come closest, in the nearest folder above that exists."""
    existing = next(folder for folder in path.absolute().parents if folder.is_dir())
    missing = path.absolute().relative_to(existing).parts[0]
    try:
        names = [entry.name for entry in existing.iterdir()]
    except OSError:
        return ""
    close = get_close_matches(missing, names, n=_SHOWN)
    shown = ", ".join(repr(str(existing / name)) for name in close)
    return f"; the closest are {shown}" if close else f" (looked in {existing})"
