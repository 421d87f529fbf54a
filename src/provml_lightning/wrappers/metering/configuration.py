"""A meter's arguments, checked before anything is measured."""

from __future__ import annotations

import difflib
import functools
import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from provml_lightning.errors import ConfigurationError
from provml_lightning.runtime.faults import warn

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

__all__ = ["check_choices", "check_texts", "powercap_in", "read_config", "telling_what_was_asked"]

Init = TypeVar("Init", bound="Callable[..., None]")


def telling_what_was_asked(init: Init) -> Init:
    """Let a constructor know whether ``get_country`` was given: a default asks for nothing."""
    signature = inspect.signature(init)

    @functools.wraps(init)
    def told(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs).arguments
        self._asked_for_country = bool(given.get("get_country"))
        init(self, *args, **kwargs)

    return told  # type: ignore[return-value]  # it is called as init is


def check_texts(**values: Any) -> None:
    """Refuse arguments that are no texts.

    Raises:
        ConfigurationError: One is not.
    """
    for name, value in values.items():
        if not isinstance(value, str):
            raise ConfigurationError(f"{name}={value!r} must be a text")


def check_choices(**values: Any) -> None:
    """Refuse what is neither True nor False: the text "false" of a config file would be true.

    Raises:
        ConfigurationError: One is not.
    """
    for name, value in values.items():
        if not isinstance(value, bool):
            raise ConfigurationError(f"{name}={value!r} must be True or False")


def read_config(path: str | os.PathLike[str], known: Iterable[str]) -> dict[str, Any]:
    """Return the arguments that a JSON file holds.

    Raises:
        ConfigurationError: It cannot be read, or names something that is no argument.
    """
    try:
        told = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(told, dict):
        raise ConfigurationError(f'{path} must hold an object, such as {{"location": "IT"}}')
    names = list(known)
    for name in told:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=3, cutoff=0.6) or names
            raise ConfigurationError(
                f"{path}: {name!r} is no argument of PowerMeter; did you mean {', '.join(near)}?"
            )
    return told


def powercap_in(folder: str) -> str:
    """Return a folder of the CPUs' counters; empty for one that has none, such as a program's."""
    if not folder or any(Path(folder).glob("intel-rapl*")):
        return folder
    warn(f"cpu_power_log_path={folder!r} has no power zones; the machine's own sensors are read")
    return ""
