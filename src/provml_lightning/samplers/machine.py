"""All channels that this machine has for this process, and what has to be said of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provml_lightning.samplers.amd import open_amd
from provml_lightning.samplers.apple import open_apple
from provml_lightning.samplers.base import Opened
from provml_lightning.samplers.host import PROC, open_host, open_process
from provml_lightning.samplers.models import cpu_model, cpu_name, cpu_tdp, ram_model
from provml_lightning.samplers.nvidia import open_nvidia
from provml_lightning.samplers.rapl import open_rapl, powercap_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from provml_lightning.samplers.base import Channel

__all__ = ["Share", "open_machine"]

_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Share:
    """What of a machine one process measures, so that several do not count it twice.

    Attributes:
        machine: CPU, RAM, disk and network, which no other process of the run measures.
        gpu: The one of the visible GPUs that is its own; None: all of them.
    """

    machine: bool = True
    gpu: int | None = None


def open_machine(folder: Path, share: Share, environ: Mapping[str, str]) -> Opened:
    """Open everything that is a process's to measure.

    Args:
        folder: The disk is the one that it lies on.
        share: What this process measures.
        environ: The environment.

    Raises:
        ConfigurationError: A variable of ours is not a number.
    """
    parts = [open_process(), _open_gpus(share, environ)]
    if share.machine:
        parts.append(_open_node(folder, environ))
    else:
        parts.append(Opened(remarks=["CPU, RAM and disk are measured by local rank 0 alone"]))
    return Opened(
        _first_of_each([channel for part in parts for channel in part.channels]),
        [remark for part in parts for remark in part.remarks],
        [close for part in parts for close in part.close],
        {name: told for part in parts for name, told in part.hardware.items()},
    )


def _open_gpus(share: Share, environ: Mapping[str, str]) -> Opened:
    """Return the GPUs of the first maker that has some."""
    nvidia = open_nvidia(environ, share.gpu)
    if nvidia.channels:
        return nvidia
    amd = open_amd(environ, share.gpu)
    if amd.channels:
        return Opened(amd.channels, amd.remarks, [*nvidia.close, *amd.close], amd.hardware)
    return Opened((), [*nvidia.remarks, *amd.remarks], [*nvidia.close, *amd.close])


def _open_node(folder: Path, environ: Mapping[str, str]) -> Opened:
    powercap = powercap_of(environ)
    host, rapl, apple = open_host(folder), open_rapl(powercap), open_apple()
    channels = [*host.channels, *rapl.channels, *apple.channels]
    remarks = [*rapl.remarks, *apple.remarks]
    names = {channel.name: channel for channel in channels}
    if "cpu.energy" not in names:
        tdp = cpu_tdp(environ, proc=PROC, powercap=powercap)
        model, told = cpu_model(names["cpu.usage"], tdp, environ)
        channels.append(model)
        remarks.append(told)
    hardware, capacity = {"cpu": cpu_name(PROC)}, _capacity(names["ram"])
    if capacity is not None:
        hardware["ram"] = f"{capacity / _GIB:.1f} GiB"
        if "ram.energy" not in names:
            model, told = ram_model(capacity, environ)
            channels.append(model)
            remarks.append(told)
    return Opened(channels, remarks, [*host.close, *rapl.close, *apple.close], hardware)


def _capacity(ram: Channel) -> float | None:
    """Return how much RAM may be used [B]."""
    ram.advance(0)
    return None if ram.level is None else ram.level.capacity


def _first_of_each(channels: Sequence[Channel]) -> list[Channel]:
    first: dict[str, Channel] = {}
    for channel in channels:
        first.setdefault(channel.name, channel)
    return list(first.values())
