"""Let a device finish what it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import device

__all__ = ["await_device"]


def await_device(place: device) -> None:
    """Return when a device has done all that it was given, as ``torch.cuda.synchronize`` does."""
    import torch

    kind = getattr(torch, place.type, None)
    if kind is not None and hasattr(kind, "synchronize"):
        kind.synchronize()
