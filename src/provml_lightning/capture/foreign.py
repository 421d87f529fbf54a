"""Questions to objects of other libraries: nothing is imported for them and nothing raises."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["attribute", "class_name", "is_a", "length"]


def is_a(value: Any, *classes: str) -> bool:
    """Return whether ``value`` is an instance of one of ``classes``, named ``"module.Class"``.

    A class of a library that was never imported has no instances, so none is imported.
    """
    return any(_is_a(value, *name.rpartition(".")[::2]) for name in classes)


def _is_a(value: Any, module: str, name: str) -> bool:
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


def class_name(value: Any) -> str:
    """Return the class of ``value`` with its module, as in ``torch.nn.modules.linear.Linear``."""
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def attribute(value: Any, name: str) -> Any:
    """Return an attribute of ``value``, None where there is none or its property raises."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001  a foreign property may raise anything
        return None


def length(value: Any) -> int | None:
    """Return ``len(value)`` [1], None where it has none or cannot tell."""
    try:
        return len(value)
    except Exception:  # noqa: BLE001  a foreign __len__ may raise anything
        return None
