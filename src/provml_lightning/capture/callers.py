"""Which calls a call comes from, and which installed library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType
    from typing import Any

__all__ = ["calls_of", "library_of"]

_INSTALLED = frozenset({"site-packages", "dist-packages"})


def calls_of(name: str, frame: FrameType | None) -> Iterator[Mapping[str, Any]]:
    """Yield the arguments of each call of a function that is under way, the innermost first.

    They are looked at, nothing is changed.
    """
    while frame is not None:
        if frame.f_code.co_name == name:
            yield frame.f_locals
        frame = frame.f_back


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
