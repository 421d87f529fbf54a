"""Tell the current run a fact or a value."""

from __future__ import annotations

import sys
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any

from provml_lightning.capture.artifacts import copy_into, describe_file, free_name, write_value
from provml_lightning.capture.callers import library_of
from provml_lightning.domain.context import canonical_context
from provml_lightning.domain.names import folder_name
from provml_lightning.domain.records import Artifact, Parameter, Record, StoredFile
from provml_lightning.domain.redaction import safe_value
from provml_lightning.domain.scalars import to_step, to_time_ns, to_value
from provml_lightning.errors import StorageError
from provml_lightning.runtime.active import OPEN_RUNS, current, deliver
from provml_lightning.runtime.run import Run
from provml_lightning.runtime.shelf import keep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_getframe = sys._getframe  # noqa: SLF001  inspect's costs a hundred times more

__all__ = ["keep_copy", "log_artifact", "log_metric", "log_param", "record_fact"]


def log_metric(
    key: str,
    value: Any,
    context: str | None = None,
    step: int | None = 0,
    source: str | None = None,
    timestamp: Any = 0,
    *,
    epoch: int | None = None,
    unit: str | None = None,
) -> None:
    """Keep one value of a metric; on return it outlives this process.

    Args:
        key: The metric's name, any text.
        value: One number: of Python, of NumPy, or a tensor of one element. It is read at once.
        context: What it belongs to, a :class:`Context` or any text; None for the run itself.
        step: Whole number, or None where there is none [1].
        source: The library that the value comes from. None: the installed library that logs the
            metric first in this context; none for the user's own code.
        timestamp: When: milliseconds since 1970 as an int, seconds as a float, a datetime with a
            time zone; 0 or None for now.
        epoch: Whole number, or None [1].
        unit: Unit of the value.

    Raises:
        RecordError: The value is not one number, the step not a whole one, the time none.
    """
    when = to_time_ns(key, timestamp) if timestamp else None
    if not OPEN_RUNS:
        found = library_of(_getframe(1)) if source is None else source
        _wait(key, value, context, step, found, epoch, when, unit)
        return
    run = OPEN_RUNS[-1]
    try:
        number = run.numbers[source][context][key]
    except (KeyError, TypeError):
        library = library_of(_getframe(1)) if source is None else None
        number = run.number_of(key, context, source, unit, library)
    run.record_value(key, number, value, step, epoch, when)


def log_param(
    key: str,
    value: Any,
    context: str | None = None,
    source: str | None = None,
    is_input: bool = False,
    *,
    is_output: bool = False,
) -> None:
    """Keep a parameter; told again with another value, both are kept and the last is marked.

    Numbers, booleans, texts and times keep their type; anything else is kept as its text, at most
    8192 characters. The value of a key that names a secret is masked.

    Args:
        key: The parameter's name, any text.
        value: Anything.
        context: What it belongs to; None for the run itself.
        source: The library that it comes from.
        is_input: The run used it; so it is for every parameter that is not an output.
        is_output: The run made it, such as a final score.
    """
    del is_input  # true of every parameter that is not an output
    record_fact(
        Parameter(
            time=time_ns(),
            key=str(key),
            value=safe_value(str(key), value),
            context=canonical_context(context),
            source=source,
            is_output=is_output,
        )
    )


def log_artifact(
    artifact_name: str,
    artifact_path: Any,
    context: str | None = None,
    step: int | None = None,
    log_copy_in_prov_directory: bool = True,
    is_model: bool = False,
    is_input: bool = False,
    *,
    source: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Path | None:
    """Keep a file, a folder or a value as an artifact of the run.

    Args:
        artifact_name: What to call it, any text.
        artifact_path: Path of a file or folder (a text is always a path), or any other value,
            which is written to a file that fits it.
        context: What it belongs to; None for the run itself.
        step: Whole number, or None [1].
        log_copy_in_prov_directory: Copy it into the run; else only its path and digest are kept.
        is_model: It is a model's weights.
        is_input: The run used it, such as pretrained weights; else the run made it.
        source: The library that it comes from.
        attributes: More to say of it.

    Returns:
        The copy inside the run; None where there is none.

    Raises:
        RecordError: There is nothing at the path.
    """
    told = attributes or {}
    described = Artifact(
        time=time_ns(),
        name=str(artifact_name),
        context=canonical_context(context),
        source=source,
        step=to_step(artifact_name, step),
        is_model=is_model,
        is_input=is_input,
        attributes={str(name): safe_value(str(name), value) for name, value in told.items()},
    )
    if not isinstance(artifact_path, (str, PathLike)):
        name = folder_name(str(artifact_name))
        return keep(
            lambda folder: [write_value(artifact_path, folder, name)],
            lambda stored: replace(described, stored=stored[0]),
        )
    if log_copy_in_prov_directory:
        return keep_copy(described, Path(artifact_path))
    _keep_reference(described, Path(artifact_path))
    return None


def record_fact(record: Record) -> None:
    """Tell the current run a fact; without a run it waits for the first that opens."""
    deliver(lambda run: run.record(record))


def keep_copy(described: Artifact, path: Path) -> Path | None:
    """Copy a file or folder into the current run and tell of both, the copy and its original.

    Raises:
        RecordError: There is nothing at the path.
    """
    shown = fspath(path)
    name = folder_name(described.name)
    wanted = name if Path(described.name).suffix else name + path.suffix

    def write(folder: Path) -> list[Path]:
        copy = free_name(folder, wanted, is_folder=path.is_dir())
        copy_into(path, copy, without=_own_folder())
        return [copy]

    def tell(files: Sequence[StoredFile]) -> Artifact:
        return replace(described, stored=files[0], original=replace(files[0], path=shown))

    return keep(write, tell)


def _keep_reference(described: Artifact, path: Path) -> None:
    try:
        original = describe_file(path, shown_as=fspath(path), without=_own_folder())
    except StorageError as error:
        run = current()
        if run is None:
            raise
        run.excuse("artifact", error)
        return
    record_fact(replace(described, original=original))


def _wait(
    key: str,
    value: Any,
    context: str | None,
    step: Any,
    source: str | None,
    epoch: Any,
    time: int | None,
    unit: str | None,
) -> None:
    """Let a value wait for the first run that opens: read now, with the time of now."""
    # A function of its own: what a lambda holds costs its function 50 ns a name at every call.
    number, at, era = to_value(key, value), to_step(key, step), to_step(key, epoch)
    told = time_ns() if time is None else time
    deliver(
        lambda run: run.record_metric(
            key, number, context, at, source, epoch=era, time=told, unit=unit
        )
    )


def _own_folder() -> Path | None:
    run = current()
    return run.directory if isinstance(run, Run) else None
