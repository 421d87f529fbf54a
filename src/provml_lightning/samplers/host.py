"""The machine and this process: CPU time, memory, disk, network.

Channels of the machine: ``cpu.usage`` [%·s], ``ram`` [B], ``disk`` [B], ``network.received`` and
``network.sent`` [B]. Channels of the process: ``process.cpu`` [s], ``process.ram`` [B],
``process.read`` and ``process.written`` [B].
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from provml_lightning.errors import SamplerReadError
from provml_lightning.samplers.base import (
    NANO,
    About,
    Accumulated,
    Channel,
    Counter,
    Gauge,
    Opened,
    Total,
)
from provml_lightning.samplers.cgroups import memory_group

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Times = Callable[[], tuple[float, float]]

__all__ = ["CpuUsage", "cpu_times", "open_host", "open_process"]

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")

_TICK = 10_000_000  # the kernel counts CPU time in hundredths of a second [ns]
_NETWORK_PACE = 2 * NANO  # it costs as much as all the rest [ns]
_COUNTED = 8  # user nice system idle iowait irq softirq steal; guest time is in user time


def open_host(folder: Path, *, proc: Path = PROC, cgroups: Path = CGROUPS) -> Opened:
    """Open the machine's channels.

    Args:
        folder: The disk is the one that it lies on.
        proc: Where the kernel tells of processes.
        cgroups: Where the kernel tells of control groups.

    Source:
        ``/proc/stat`` or ``psutil.cpu_times``, never ``psutil.cpu_percent``, whose first answer in
        each thread means nothing; the control group's memory where it is limited, else
        ``psutil.virtual_memory``; ``statvfs``; ``psutil.net_io_counters``.
    """
    times, source, close = cpu_times(proc)
    channels: list[Channel] = [
        CpuUsage("cpu.usage", About("%", source, 5 * _TICK), times),
        _memory(proc, cgroups),
        Gauge("disk", About("B", "statvfs"), lambda: _disk(folder)),
        *_network(),
    ]
    return Opened(channels, close=[close])


def open_process() -> Opened:
    """Open the channels of this process, without its children.

    Source:
        ``time.process_time_ns``; psutil.
    """
    import psutil

    process = psutil.Process()
    seconds = About("s", "process_time")
    channels: list[Channel] = [
        Accumulated("process.cpu", seconds, [Counter(time.process_time_ns, 1)]),
        Gauge("process.ram", About("B", "psutil"), lambda: (process.memory_info().rss, None)),
    ]
    if hasattr(process, "io_counters"):
        names = {"process.read": "read_bytes", "process.written": "write_bytes"}
        channels += _counted(process.io_counters, names)
    return Opened(channels)


class CpuUsage(Channel):
    """The integral of the busy share of all CPUs over time [%·s].

    Args:
        name: The channel.
        about: What is true of it.
        times: Returns the time that the CPUs were busy, and all of their time, in any unit.
    """

    def __init__(self, name: str, about: About, times: Times) -> None:
        super().__init__(name, about)
        self._times = times
        self._last: tuple[float, float] | None = None

    @override
    def advance(self, now: int) -> None:
        """Add the busy share since the last tick; within one tick there is nothing to be told."""
        busy, spent = self._times()
        if self.total is None or self._last is None:
            self.total, self._last = Total(now, 0), (busy, spent)
            return
        ticks = spent - self._last[1]
        if ticks <= 0:
            return
        # The kernel's idle time is known to step back now and then.
        share = min(max((busy - self._last[0]) / ticks, 0.0), 1.0)
        grown = round(100 * share * (now - self.total.time))
        self.total, self._last = Total(now, self.total.amount + grown), (busy, spent)


def cpu_times(proc: Path = PROC) -> tuple[Times, str, Callable[[], object]]:
    """Return what reads the busy and the whole CPU time, its source, and what closes it."""
    try:
        file = os.open(proc / "stat", os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, AttributeError):  # no procfs here
        return _psutil_times, "psutil", lambda: None

    def times() -> tuple[float, float]:
        name, *fields = os.pread(file, 256, 0).split(None, _COUNTED + 1)
        if name != b"cpu":
            raise SamplerReadError(f"{proc}/stat begins with {name!r}, not with 'cpu'")
        ticks = [int(field) for field in fields[:_COUNTED]]
        whole = sum(ticks)
        return whole - ticks[3] - ticks[4], whole

    return times, "procfs", lambda: os.close(file)


def _psutil_times() -> tuple[float, float]:
    import psutil

    times = psutil.cpu_times()
    whole = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return whole - times.idle - getattr(times, "iowait", 0.0), whole


def _memory(proc: Path, cgroups: Path) -> Gauge:
    import psutil

    machine = psutil.virtual_memory().total
    group = memory_group(proc, cgroups, machine)
    if group is not None:
        return Gauge("ram", About("B", "cgroup"), lambda: (group.used(), group.limit))

    def read() -> tuple[float, float]:
        memory = psutil.virtual_memory()
        return memory.total - memory.available, memory.total

    return Gauge("ram", About("B", "psutil"), read)


def _disk(folder: Path) -> tuple[float, float]:
    """Return what is used, and what a user without privileges may use in all [B]."""
    import psutil

    usage = psutil.disk_usage(str(folder))
    return usage.used, usage.used + usage.free


def _network() -> list[Channel]:
    import psutil

    names = {"network.received": "bytes_recv", "network.sent": "bytes_sent"}
    return _counted(psutil.net_io_counters, names, pace=_NETWORK_PACE)


def _counted(read: Callable[[], object], names: Mapping[str, str], pace: int = 0) -> list[Channel]:
    """Return a channel [B] for each named field of what is read, once, for the first of them."""
    try:
        told: object = read()
    except Exception:  # noqa: BLE001  a container hides these files; psutil then raises anything
        return []
    if told is None:  # no interface at all
        return []

    def first(field: str) -> int:
        nonlocal told
        told = None
        told = read()
        return later(field)

    def later(field: str) -> int:
        value: int = getattr(told, field)
        return value

    about = About("B", "psutil")
    return [
        Accumulated(name, about, [Counter(partial(get, field), NANO)], background=True, pace=pace)
        for get, (name, field) in zip((first, later), names.items(), strict=True)
    ]
