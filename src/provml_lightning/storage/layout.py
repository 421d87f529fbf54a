"""Where everything of a run lies, and how a run gets a place of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from provml_lightning.domain.context import Context
from provml_lightning.domain.names import file_name, folder_name
from provml_lightning.errors import ConfigurationError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["RunLayout", "attach", "reserve", "run_folder"]

_JOURNAL = re.compile(r"rank-\d{5,}(\.\d+)?\.jsonl")
# A context file's name is never this one: no encoding of a name yields a tilde before letters.
_NO_CONTEXT = "~run"
_KNOWN = frozenset(context.value for context in Context)


@dataclass(frozen=True, slots=True)
class RunLayout:
    """The paths of one run; nothing here touches the disk but the predicates."""

    directory: Path

    @property
    def index(self) -> Path:
        """``run.json``: what the run is and which files it has."""
        return self.directory / "run.json"

    def document(self, stem: str) -> Path:
        """Return the PROV-JSON of the run that is called ``stem``."""
        return self.directory / f"prov_{stem}.json"

    @property
    def journal(self) -> Path:
        """The folder of the append-only files."""
        return self.directory / "journal"

    @property
    def metrics(self) -> Path:
        """The folder of the metrics files."""
        return self.directory / "metrics"

    @property
    def artifacts(self) -> Path:
        """The folder of copies, models and requirements."""
        return self.directory / "artifacts"

    def metrics_file(self, context: str | None, suffix: str) -> Path:
        """Return the file that holds all metrics of a context."""
        stem = _NO_CONTEXT if context is None else _context_name(context)
        return self.metrics / f"{stem}{suffix}"

    def journal_file(self, stem: str) -> Path:
        """Return a writer's journal."""
        return self.journal / f"{stem}.jsonl"

    def points_file(self, stem: str) -> Path:
        """Return a writer's point log."""
        return self.journal / f"{stem}.points"

    def journal_files(self) -> list[Path]:
        """Return the journals that exist, in the order of their ranks and segments."""
        try:
            names = [path.name for path in self.journal.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [
            self.journal / name for name in sorted(filter(_JOURNAL.fullmatch, names), key=_order)
        ]

    def writers(self) -> list[tuple[int, int]]:
        """Return rank and segment of every writer that has a journal."""
        return [_order(path.name) for path in self.journal_files()]

    def is_run(self) -> bool:
        """Tell whether this folder is a run of ours."""
        return bool(self.journal_files())

    def relative(self, path: Path) -> str:
        """Return a path inside the run as documents hold it."""
        return path.relative_to(self.directory).as_posix()


def run_folder(experiment: str, run_id: int | str) -> str:
    """Return the name of a run's folder: ``<experiment>_<run id>``."""
    return f"{folder_name(experiment)}_{run_id}"


def reserve(parent: Path, stem: str) -> tuple[Path, int]:
    """Make a folder ``<stem><n>`` that no other process has, n being the highest plus one.

    Raises:
        StorageError: The folder cannot be made.

    Source:
        POSIX ``mkdir`` is exclusive, on NFS too; a listing alone is a race.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for number in _candidates(parent, stem):
            try:
                folder = parent / f"{stem}{number}"
                folder.mkdir()
            except FileExistsError:
                continue
            return folder, number
    except OSError as error:
        raise StorageError(
            f"no run can be made in {parent}: {error.strerror or error}. Give another folder with"
            " save_dir= or provenance_save_dir="
        ) from error
    raise AssertionError("unreachable: the candidates never end")


def attach(folder: Path) -> bool:
    """Make a run's folder or join the one that exists; tell whether it was made.

    Raises:
        ConfigurationError: Something that is not a folder, or a planted link, stands there.
        StorageError: The folder cannot be made.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
    except FileExistsError:
        if folder.is_symlink() or not folder.is_dir():
            raise ConfigurationError(f"{folder} is not a folder; a run cannot lie there") from None
        return False
    except OSError as error:
        raise StorageError(f"no run can be made at {folder}: {error.strerror or error}") from error
    return True


def _candidates(parent: Path, stem: str) -> Iterator[int]:
    while True:
        taken = re.compile(re.escape(stem) + r"(\d+)", re.IGNORECASE)
        numbers = [int(m[1]) for path in parent.iterdir() if (m := taken.fullmatch(path.name))]
        yield max(numbers, default=-1) + 1


def _context_name(context: str) -> str:
    # The known contexts keep their capitals: an encoded name never has any.
    return context if context in _KNOWN else file_name(context)


def _order(name: str) -> tuple[int, int]:
    rank, _, segment = name.removeprefix("rank-").removesuffix(".jsonl").partition(".")
    return int(rank), int(segment or 1)
