"""Which installed library a call comes from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

__all__ = ["KNOWN", "library_of"]

_INSTALLED = frozenset({"site-packages", "dist-packages"})
# The answers so far, by module; open to a caller that cannot afford a call.
KNOWN: dict[str | None, str | None] = {}


def library_of(module: dict[str, Any]) -> str | None:
    """Return the installed library whose module has these globals; None for the user's own code.

    The standard library and scripts are no libraries.
    """
    name = module.get("__name__")
    library = KNOWN[name] = _library(name, module.get("__file__"))
    return library


def _library(name: str | None, file: str | None) -> str | None:
    if name is None or file is None or name == "__main__":
        return None
    package = name.partition(".")[0]
    if package in sys.stdlib_module_names or _INSTALLED.isdisjoint(Path(file).parts):
        return None
    return package
