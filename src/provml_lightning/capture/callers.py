"""Which installed library a call comes from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["library_of"]

_INSTALLED = frozenset({"site-packages", "dist-packages"})


def library_of(frame: FrameType) -> str | None:
    """Return the installed library whose code a frame runs; None for the user's own code.

    The standard library and scripts are no libraries.
    """
    name, file = (frame.f_globals.get(known) for known in ("__name__", "__file__"))
    if not isinstance(name, str) or not isinstance(file, str) or name == "__main__":
        return None
    package = name.partition(".")[0]
    if package in sys.stdlib_module_names or _INSTALLED.isdisjoint(Path(file).parts):
        return None
    return package
