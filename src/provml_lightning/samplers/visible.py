"""Which GPUs a process may use, as ``CUDA_VISIBLE_DEVICES`` and its kin say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Device", "own_device", "visible_devices"]


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU, or a part of one.

    Attributes:
        uuid: ``GPU-…``, or ``MIG-…`` for a part.
        handle: What the driver's library knows it by.
        parent: The GPU that it is a part of; None for a whole one.
        parts: Its parts, where it is divided (MIG).
    """

    uuid: str
    handle: object
    parent: Device | None = None
    parts: tuple[Device, ...] = ()

    @property
    def whole(self) -> Device:
        """The GPU itself."""
        return self.parent or self


def visible_devices(text: str | None, devices: Sequence[Device]) -> list[Device]:
    """Return the devices that a process may use, in its order.

    Args:
        text: The variable's text; None where it is not set: all devices. Empty: none.
        devices: All GPUs, in the driver's order.

    Source:
        CUDA's programming guide, "CUDA environment variables": indices or the beginnings of UUIDs,
        separated by commas; devices after one that does not exist are not visible.
    """
    if text is None:
        return list(devices)
    chosen: dict[str, Device] = {}
    for token in text.split(","):
        device = _device(token.strip(), devices)
        if device is None:
            break
        chosen.setdefault(device.uuid, device)
    return list(chosen.values())


def own_device(visible: list[Device], local_rank: int | None) -> list[Device]:
    """Return the one device that a rank computes on; all of them where it is not told.

    A launcher that shows every process its own device shows it one, whatever its rank.
    """
    if local_rank is None or len(visible) <= 1:
        return visible
    return visible[local_rank : local_rank + 1]


def _device(token: str, devices: Sequence[Device]) -> Device | None:
    if token.isdecimal():
        return devices[int(token)] if int(token) < len(devices) else None
    # MIG-GPU-<uuid>/<instance>/<instance> is how drivers before 470 called a part.
    token = token.partition("/")[0].replace("MIG-GPU-", "GPU-")
    if not token.startswith(("GPU-", "MIG-")):
        return None
    found = [device for device in _all(devices) if device.uuid.startswith(token)]
    return found[0] if len(found) == 1 else None


def _all(devices: Sequence[Device]) -> Iterator[Device]:
    for device in devices:
        yield device
        yield from device.parts
