"""Tell the current run what it takes to repeat it: the command and the code."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from provml_lightning.api.records import keep_copy, log_param, record_fact
from provml_lightning.capture.artifacts import copy_into, free_name
from provml_lightning.capture.places import written_whole
from provml_lightning.capture.source import git_diff, git_facts, project_sources
from provml_lightning.domain.records import Artifact
from provml_lightning.domain.redaction import redact_arguments
from provml_lightning.errors import RecordError
from provml_lightning.runtime.shelf import keep

if TYPE_CHECKING:
    from os import PathLike

    from provml_lightning.domain.values import Plain

__all__ = ["log_execution_command", "log_source_code"]

_LARGEST_DIFF = 4 << 20


def log_execution_command(cmd: str, path: str | PathLike[str] | None = None) -> None:
    """Keep the command that runs this, so that it can be run again; secrets in it are masked.

    Args:
        cmd: The command, such as ``python3``, with or without the script and its arguments.
        path: The script, where ``cmd`` does not name it.
    """
    command = cmd if path is None else f"{cmd} {shlex.quote(str(path))}"
    try:
        shown = shlex.join(redact_arguments(shlex.split(command)))
    except ValueError:  # an open quote: no shell would take it either, so it is kept as text
        shown = " ".join(redact_arguments(command.split()))
    log_param("execution_command", shown)


def log_source_code(
    path: str | PathLike[str] | None = None, *, use_git: bool | None = None
) -> Path | None:
    """Keep the code that runs: a file, a folder, or the repository and commit that hold it.

    Args:
        path: A file or folder, which is copied into the run. None: the repository of the script,
            with its commit and, where it was changed since, the changes; where it is in none that
            has a remote, the script's own modules are copied.
        use_git: True: the repository or an error; False: a copy; None: as said above.

    Returns:
        What was written into the run; None where nothing was.

    Raises:
        RecordError: There is nothing at ``path``, or ``use_git`` and no repository with a remote.
    """
    if path is not None:
        return keep_copy(_described(), Path(path))
    main = _main_script()
    facts = None if use_git is False else git_facts(main.parent)
    if facts is not None and "remote" in facts:
        return _keep_repository(facts, main.parent)
    if use_git:
        raise RecordError(f"{main.parent} is in no git repository with a remote; pass path=")
    return _keep_modules(main)


def _described(facts: dict[str, Plain] | None = None) -> Artifact:
    return Artifact(
        time=time.time_ns(),
        name="source_code",
        category="SourceCode",
        is_input=True,
        attributes=facts or {},
    )


def _keep_repository(facts: dict[str, Plain], folder: Path) -> Path | None:
    described = _described(facts)
    diff = git_diff(folder, max_bytes=_LARGEST_DIFF) if facts.get("dirty") else None
    if diff is None:
        record_fact(described)
        return None

    def write(artifacts: Path) -> list[Path]:
        patch = free_name(artifacts, "source_code.diff")
        with written_whole(patch) as temporary:
            temporary.write_bytes(diff)
        return [patch]

    return keep(write, lambda files: replace(described, stored=files[0]))


def _keep_modules(main: Path) -> Path | None:
    """Copy the script's own modules with the folders that they lie in below it."""
    modules = project_sources(main)
    if not modules:
        raise RecordError(f"{main} has no source files; pass path=")

    def write(folder: Path) -> list[Path]:
        target = free_name(folder, "source_code", is_folder=True)
        for module in modules:
            copy_into(module, target / module.relative_to(main.parent))
        return [target]

    return keep(write, lambda files: replace(_described({"main": main.name}), stored=files[0]))


def _main_script() -> Path:
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(main).resolve() if main else Path.cwd() / "<interactive>"
