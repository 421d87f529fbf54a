"""The name that users import; everything is :mod:`provml_lightning`'s."""

from __future__ import annotations

from typing import TYPE_CHECKING

import provml_lightning
from provml_lightning import __all__ as __all__

if TYPE_CHECKING:
    from provml_lightning import *  # noqa: F403


def __getattr__(name: str) -> object:
    """Return the library's own name, and keep it, so that the next use costs nothing."""
    value = getattr(provml_lightning, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
