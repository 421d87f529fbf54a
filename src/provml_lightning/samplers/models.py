"""Power where no sensor tells it: a model, named as one, with what it assumes."""

from __future__ import annotations

import csv
import importlib.util
import math
import os
import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import override

from provml_lightning.errors import ConfigurationError, SamplerReadError
from provml_lightning.samplers.base import About, Accumulated, Channel, Constant, Total

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Tdp", "UsageModel", "cpu_model", "cpu_name", "cpu_tdp", "dimm_power", "ram_model"]

IDLE_FRACTION = 0.1
WATTS_PER_THREAD = 4.0

_GIB = 2**30
_DECORATIONS = re.compile(
    r"\((?:R|TM|C)\)|\bCPU\b|@.*|\b\d+-Core Processor\b|\bProcessor\b", re.IGNORECASE
)


class Tdp(NamedTuple):
    """The power of all CPUs under full load [W], and where it is known from."""

    watts: float
    known_from: str


class UsageModel(Channel):
    """Energy of the CPUs from their usage: linear between idle and full load.

    Args:
        usage: The channel of the usage [%·s].
        watts: Power under full load [W].
        idle: The share of it that is drawn without load [1].
    """

    def __init__(self, usage: Channel, watts: float, idle: float) -> None:
        super().__init__("cpu.energy", About("J", "model.tdp", usage.about.resolution))
        self._usage = usage
        self._watts = watts
        self._idle = idle
        self._began: int | None = None

    @override
    def advance(self, now: int) -> None:
        """Follow the usage, which was read just before; what it adds comes a tick late at most."""
        known = self._usage.total
        if known is None or self._usage.failing_since is not None:
            raise SamplerReadError("the CPUs' usage is not known")
        if self._began is None:
            self._began = now
        full = (now - self._began) * self._idle + known.amount / 100 * (1 - self._idle)
        self.total = Total(now, round(self._watts * full))


def cpu_model(usage: Channel, tdp: Tdp, environ: Mapping[str, str]) -> tuple[Channel, str]:
    """Return the modelled ``cpu.energy`` and what it assumes."""
    idle = _number(environ, "PROVML_CPU_IDLE_FRACTION", most=1.0)
    idle = IDLE_FRACTION if idle is None else idle
    told = (
        f"the CPUs' energy is modelled (model.tdp): {tdp.watts:g} W under full load"
        f" ({tdp.known_from}), {idle:g} of it when idle, linear between"
    )
    return UsageModel(usage, tdp.watts, idle), told


def ram_model(capacity: float, environ: Mapping[str, str]) -> tuple[Channel, str]:
    """Return the modelled ``ram.energy`` of so much memory [B] and what it assumes."""
    watts = _number(environ, "PROVML_RAM_POWER_W")
    why = "PROVML_RAM_POWER_W"
    if watts is None:
        gib = capacity / _GIB
        watts = dimm_power(gib, arm=platform.machine().lower().startswith(("arm", "aarch")))
        why = f"CodeCarbon's table of modules for {gib:.1f} GiB"
    channel = Accumulated("ram.energy", About("J", "model.dimm"), [Constant(watts)])
    return channel, f"the RAM's energy is modelled (model.dimm): always {watts:g} W ({why})"


def cpu_tdp(environ: Mapping[str, str], *, proc: Path, powercap: Path) -> Tdp:
    """Return the power of all CPUs under full load [W].

    A virtual machine sees threads and not CPUs, so that its CPUs' names tell nothing of its share.

    Source:
        The variable ``PROVML_CPU_TDP_W``; the packages' power limits, which anybody may read; the
        CPU's name in CodeCarbon's table; else 4 W a thread, as CodeCarbon has it.
    """
    chosen = _number(environ, "PROVML_CPU_TDP_W")
    if chosen is not None:
        return Tdp(chosen, "PROVML_CPU_TDP_W")
    limits = [
        int(text) / 1e6
        for zone in sorted(powercap.glob("intel-rapl:*"))
        if _read(zone / "name").startswith("package")
        and (text := _read(zone / "constraint_0_max_power_uw")).isdecimal()
        and int(text)
    ]
    if limits:
        return Tdp(sum(limits), "the packages' power limits")
    name, sockets, virtual = _cpus(_read(proc / "cpuinfo"))
    watts = None if virtual else _tabled(name)
    if watts is not None:
        return Tdp(watts * sockets, f"{sockets} × {name}, CodeCarbon's table")
    threads = os.cpu_count() or 1
    return Tdp(WATTS_PER_THREAD * threads, f"unknown CPU: 4 W for each of {threads} threads")


def cpu_name(proc: Path) -> str:
    """Return what the CPUs are called and how many threads they have."""
    name, _, virtual = _cpus(_read(proc / "cpuinfo"))
    threads = f"{os.cpu_count() or 1} threads"
    return ", ".join(part for part in (name, threads, "virtual" if virtual else "") if part)


def dimm_power(gib: float, *, arm: bool = False) -> float:
    """Return the power of so much RAM [W]: a guess of its modules, 5 W each (ARM: 1.5 W).

    Source:
        CodeCarbon 3, ``external/ram.py``, so that both tools say the same.
    """
    each, least = (1.5, 3.0) if arm else (5.0, 10.0)
    modules = _modules(gib)
    # The more modules, the less each one more draws.
    shares = ((4, 1.0), (8, 0.9), (16, 0.8), (32, 0.7))
    watts, below = 0.0, 0
    for up_to, share in shares:
        watts += each * share * max(min(modules, up_to) - below, 0)
        below = up_to
    return max(watts, least)


def _modules(gib: float) -> int:
    for most, modules in ((2, 1), (16, 2), (64, 4), (128, 8)):
        if gib <= most:
            return modules
    size = next(size for size in (128, 64, 32, 16, 8, 4) if size <= gib / 8)
    return min(math.ceil(gib / size), 32)


def _cpus(cpuinfo: str) -> tuple[str, int, bool]:
    """Return the CPUs' name, how many there are, and whether the machine is a virtual one."""
    fields = re.findall(r"^([\w ]+?)\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    names = [value for key, value in fields if key == "model name"]
    sockets = {value for key, value in fields if key == "physical id"}
    virtual = any(key == "flags" and "hypervisor" in value.split() for key, value in fields)
    return names[0] if names else platform.processor(), max(len(sockets), 1), virtual


def _tabled(name: str) -> float | None:
    """Return the power that CodeCarbon's table has for a CPU of exactly this name [W]."""
    found = importlib.util.find_spec("codecarbon")
    if found is None or found.origin is None or not name:
        return None
    table = Path(found.origin).parent / "data" / "hardware" / "cpu_power.csv"
    wanted = _plain(name)
    try:
        with table.open(newline="") as lines:
            rows = {_plain(row["Name"]): row["TDP"] for row in csv.DictReader(lines)}
        return float(rows[wanted])
    except (OSError, KeyError, ValueError):
        return None


def _plain(name: str) -> str:
    return " ".join(_DECORATIONS.sub(" ", name).split()).lower()


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _number(environ: Mapping[str, str], name: str, most: float = math.inf) -> float | None:
    text = environ.get(name, "")
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= most or math.isinf(number):
        raise ConfigurationError(f"{name}={text!r} must be a number from 0 to {most:g}")
    return number
