"""What a run uses without being told: the commit of its code, and the installed packages."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from provml_lightning.capture.artifacts import describe_file
from provml_lightning.capture.environment import installed_packages, requirements_text
from provml_lightning.capture.source import code_place, git_dirty, git_head
from provml_lightning.domain.records import Artifact, Commit, Note
from provml_lightning.errors import ProvMLError, RecordError, StorageError
from provml_lightning.storage.index import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from provml_lightning.runtime.run import Run

__all__ = ["record_packages", "seek_commit"]

_PATIENCE = 2.0  # with git, when documents are written [s]


class _Inquiry(threading.Thread):
    """Asks git, which may be slow, beside the training."""

    def __init__(self, run: Run, place: Path) -> None:
        super().__init__(name="provml-git", daemon=True)
        self._about = run
        self._place = place
        self._patience = _PATIENCE

    @override
    def run(self) -> None:
        try:
            self._ask()
        except Exception as error:  # noqa: BLE001  a thread's would be printed to the user
            with suppress(ProvMLError):
                self._about.excuse("git", RecordError(f"git could not be asked: {error}"))

    def _ask(self) -> None:
        head: dict[str, Any] = git_head(self._place)
        if "commit" in head:
            self._tell(Commit(time=time.time_ns(), **head))
            if (dirty := git_dirty(self._place)) is not None:  # the slow one
                self._tell(Commit(time=time.time_ns(), commit=head["commit"], dirty=dirty))

    def _tell(self, commit: Commit) -> None:
        with suppress(ProvMLError):  # the run has ended, or says itself that it is strict
            self._about.record(commit)

    def wait(self) -> None:
        """Let it end before documents are written, if it does soon."""
        self.join(self._patience)
        if self.is_alive() and self._patience:
            told = f"git had not answered after {_PATIENCE:g} s, so what it says may be missing"
            self._about.record(Note(time=time.time_ns(), topic="git", message=told))
        self._patience = 0.0


def seek_commit(run: Run) -> None:
    """Tell a run the commit of the code that runs as soon as git has said it, if there is one."""
    with suppress(OSError, RuntimeError):  # no working directory; no thread can start now
        inquiry = _Inquiry(run, code_place())
        inquiry.start()
        run.contributors.add(inquiry.wait)


def record_packages(run: Run) -> None:
    """Write the installed packages into the run, and tell that it used them.

    Raises:
        StorageError: They cannot be written.
    """
    path = run.layout.artifacts / "requirements.txt"
    try:
        path.parent.mkdir(exist_ok=True)
        write_whole(path, requirements_text(installed_packages()).encode())
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written: {error.strerror or error}. Make room, or give another"
            " folder with save_dir= or provenance_save_dir="
        ) from error
    run.record(
        Artifact(
            time=time.time_ns(),
            name="requirements.txt",
            stored=describe_file(path, shown_as=run.layout.relative(path)),
            is_input=True,
        )
    )
