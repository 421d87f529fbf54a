"""What a caller says of a measure, and whose it is."""

from __future__ import annotations

import getpass
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provml_lightning.domain.redaction import redact
from provml_lightning.domain.values import to_plain
from provml_lightning.errors import ConfigurationError

__all__ = ["STEPS", "Labels", "Whose", "labels_of", "whose_of"]

STEPS = ("inference", "training", "other", "test", "run", "preprocessing")

_NOBODY = "--"  # what CarbonAI writes where a name was not told


@dataclass(frozen=True, slots=True)
class Labels:
    """What one measure is of, in the caller's words; what was not told is empty."""

    package: str
    algorithm: str
    step: str
    data_type: str
    data_shape: str
    algorithm_params: str
    comments: str


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose measures these are: private data, written where the caller says and nowhere else."""

    project: str
    program: str
    client: str
    user: str


def labels_of(
    package: Any,
    algorithm: Any,
    step: Any,
    data_type: Any,
    data_shape: Any,
    algorithm_params: Any,
    comments: Any,
) -> Labels:
    """Return what a caller told; secrets in it are masked, a known step gets its one spelling.

    Raises:
        ConfigurationError: Package or algorithm is empty.
    """
    for name, value in (("package", package), ("algorithm", algorithm)):
        if not _text(value).strip():
            raise ConfigurationError(
                f"{name}={value!r} must say what is measured, such as"
                " package='sklearn', algorithm='RandomForestClassifier'"
            )
    told = _text(step)
    known = told.strip().lower()
    return Labels(
        _text(package),
        _text(algorithm),
        known if known in STEPS else told,
        *(_text(value) for value in (data_type, data_shape, algorithm_params, comments)),
    )


def whose_of(project_name: str, program_name: str, client_name: str, user_name: str) -> Whose:
    """Return whose measures these are: the working folder's project and the machine's user, unless
    it was told.
    """
    return Whose(
        project_name or _folder() or _NOBODY,
        program_name or _NOBODY,
        client_name or _NOBODY,
        user_name or _user(),
    )


def _folder() -> str:
    try:
        return Path.cwd().name
    except OSError:  # that folder was removed
        return ""


def _text(value: Any) -> str:
    return "" if value is None else redact(str(to_plain(value)))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user may have no name
        return _NOBODY
