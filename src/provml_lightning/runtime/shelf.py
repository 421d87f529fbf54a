"""Where the files of a run go; those of calls before any run wait in a folder of their own."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from provml_lightning.capture.artifacts import describe_file, free_name
from provml_lightning.domain.records import Record, StoredFile
from provml_lightning.errors import StorageError
from provml_lightning.runtime.active import AnyRun, current, deliver
from provml_lightning.runtime.run import Run

__all__ = ["keep"]

Write = Callable[[Path], Sequence[Path]]
Tell = Callable[[Sequence[StoredFile]], Record]


def keep(write: Write, tell: Tell) -> Path | None:
    """Write files into the current run and tell of them; without one, into the first that opens.

    A disk that fails is one warning and a note in the document, unless the run is strict.

    Args:
        write: Makes the files below the folder that it is given, and returns their paths.
        tell: Makes the fact from what the files are.

    Returns:
        Where the first file lies, or None where nothing was written: on a rank that does not
        record, or because the disk failed.
    """
    run = current()
    if run is None:
        waiting = write(_waiting_room())
        deliver(lambda opened: _adopt(opened, waiting, tell))
        return waiting[0]
    if not isinstance(run, Run):
        return None
    try:
        paths = write(run.layout.artifacts)
        stored = _described(run, paths)
    except StorageError as error:
        run.excuse("artifact", error)
        return None
    run.record(tell(stored))
    return paths[0]


def _adopt(run: AnyRun, waiting: Sequence[Path], tell: Tell) -> None:
    """Move files that waited into the run that opened."""
    if not isinstance(run, Run):
        return
    try:
        stored = _described(run, [_move(path, run.layout.artifacts) for path in waiting])
    except StorageError as error:
        run.excuse("artifact", error)
        return
    run.record(tell(stored))


def _described(run: Run, paths: Sequence[Path]) -> list[StoredFile]:
    return [describe_file(path, shown_as=run.layout.relative(path)) for path in paths]


def _move(path: Path, folder: Path) -> Path:
    """Move below a folder, across file systems too, and return where it lies then."""
    below = path.parent.relative_to(_waiting_room())
    place = free_name(folder / below, path.name, is_folder=path.is_dir())
    try:
        if path.is_dir():
            place.rmdir()
        shutil.move(path, place)
    except OSError as error:
        raise StorageError(
            f"{path} cannot be moved to {place}: {error.strerror or error}"
        ) from error
    return place


@cache
def _waiting_room() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="provml-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
