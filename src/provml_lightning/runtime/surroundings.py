"""What a run uses without being told: the commit of its code, and the installed packages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from provml_lightning.capture.artifacts import describe_file
from provml_lightning.capture.environment import installed_packages, requirements_text
from provml_lightning.capture.source import code_folder, git_facts
from provml_lightning.domain.records import Artifact
from provml_lightning.errors import StorageError
from provml_lightning.storage.index import write_whole

if TYPE_CHECKING:
    from provml_lightning.domain.values import Plain
    from provml_lightning.runtime.run import Run

__all__ = ["commit_facts", "record_packages"]

_OF_A_RUN = ("commit", "branch", "dirty", "remote")


def commit_facts() -> dict[str, Plain]:
    """Return the git state of the code that runs; nothing where it is in no commit.

    Returns:
        ``git_commit``, ``git_branch``, ``git_dirty`` and ``git_remote``, as
        :func:`~provml_lightning.capture.source.git_facts` has them.
    """
    try:
        facts = git_facts(code_folder()) or {}
    except OSError:  # the working directory was removed
        return {}
    told = _OF_A_RUN if "commit" in facts else ()
    return {f"git_{name}": facts[name] for name in told if name in facts}


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
