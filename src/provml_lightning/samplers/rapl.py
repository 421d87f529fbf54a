"""Energy that the CPU packages and the RAM count themselves: RAPL, through Linux's powercap."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from provml_lightning.errors import SamplerReadError
from provml_lightning.samplers.base import About, Accumulated, Channel, Counter, Opened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["POWERCAP", "open_cores", "open_rapl", "powercap_of"]

POWERCAP = Path("/sys/class/powercap")

_NANO_PER_COUNT = 1000  # a count is a microjoule
_RESOLUTION = 10_000_000  # counters are refreshed about every millisecond [ns]
_MIRROR = 1_000_000  # counters closer than this are one counter seen twice [µJ]
_GLANCE = 0.05  # [s]


class _Zone:
    """A power zone; its counter's file stays open, which makes reading it ten times cheaper."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self._file: int | None = None

    def count(self) -> int:
        """Return the counter [µJ].

        Raises:
            SamplerReadError: It cannot be read, this time.
        """
        try:
            if self._file is None:
                self._file = os.open(self.path / "energy_uj", os.O_RDONLY | os.O_CLOEXEC)
            return int(os.pread(self._file, 32, 0))
        except (OSError, ValueError) as error:
            raise SamplerReadError(f"{self.path}/energy_uj: {error}") from error

    def modulus(self) -> int | None:
        """Return where the counter wraps [µJ]; None if it does not tell."""
        try:
            return int((self.path / "max_energy_range_uj").read_text()) or None
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def open_rapl(root: Path = POWERCAP, *, pause: Callable[[float], object] = time.sleep) -> Opened:
    """Open ``cpu.energy``, the sum of the packages, and ``ram.energy``, the sum of their DRAM.

    Cores and uncore are inside their package and are not counted again; nor is a package that the
    memory-mapped interface shows too, nor a die whose counter is another's. The platform (psys)
    stands in where there is no package.

    Args:
        root: Where the kernel tells of power capping.
        pause: Waits [s], where two counters look like one.

    Source:
        ``energy_uj`` and ``max_energy_range_uj`` of the zones ``intel-rapl:*``, of AMD too.
    """
    zones = _zones(root)
    if not zones:
        return Opened(remarks=[f"RAPL: {root} has no zone intel-rapl"])
    packages = [zone for zone in zones if zone.name.startswith("package")]
    source = "rapl" if packages else "rapl.psys"
    wanted = packages or [zone for zone in zones if zone.name == "psys"]
    channels: list[Channel] = []
    remarks: list[str] = []
    for name, label, group in (
        ("cpu.energy", source, wanted),
        ("ram.energy", "rapl", [zone for zone in zones if zone.name == "dram"]),
    ):
        try:
            single = _without_mirrors(group, pause)
        except SamplerReadError as error:
            remarks.append(_reason(error, root))
            continue
        if single:
            counters = [Counter(zone.count, _NANO_PER_COUNT, zone.modulus()) for zone in single]
            channels.append(Accumulated(name, About("J", label, _RESOLUTION), counters))
    return Opened(channels, tuple(dict.fromkeys(remarks)), [zone.close for zone in zones])


def open_cores(environ: Mapping[str, str]) -> Opened:
    """Open ``cpu.core_energy``, the sum of the cores inside the packages, for who asks for it.

    Source:
        As in :func:`open_rapl`, the zones called ``core``.
    """
    zones = _zones(powercap_of(environ))
    cores = [zone for zone in zones if zone.name == "core"]
    try:
        for zone in cores:
            zone.count()
    except SamplerReadError:
        cores = []
    if not cores:
        return Opened()
    counters = [Counter(zone.count, _NANO_PER_COUNT, zone.modulus()) for zone in cores]
    channel = Accumulated("cpu.core_energy", About("J", "rapl", _RESOLUTION), counters)
    return Opened([channel], close=[zone.close for zone in cores])


def powercap_of(environ: Mapping[str, str]) -> Path:
    """Return where the kernel tells of power capping: ``PROVML_POWERCAP``, else its own folder.

    A container may have it mounted elsewhere.
    """
    return Path(environ.get("PROVML_POWERCAP") or POWERCAP)


def _zones(root: Path) -> list[_Zone]:
    """Return the zones; those of the memory-mapped interface only where there are no others."""
    for prefix in ("intel-rapl", "intel-rapl-mmio"):
        # The class folder shows sub-zones beside their zone; other mounts show them inside alone.
        paths = {
            path.name: path
            for pattern in (f"{prefix}:*/{prefix}:*:*", f"{prefix}:*")
            for path in sorted(root.glob(pattern))
        }
        zones = [_Zone(path, name) for path in paths.values() if (name := _name(path))]
        if zones:
            return zones
    return []


def _name(path: Path) -> str | None:
    try:
        return (path / "name").read_text().strip()
    except OSError:
        return None


def _without_mirrors(zones: list[_Zone], pause: Callable[[float], object]) -> list[_Zone]:
    """Return the zones without those that count what another one does."""
    before = [zone.count() for zone in zones]
    if not _pairs(before):
        return zones
    pause(_GLANCE)
    after = [zone.count() for zone in zones]
    mirrors = {second for _, second in _pairs(before) & _pairs(after)}
    return [zone for number, zone in enumerate(zones) if number not in mirrors]


def _pairs(counts: list[int]) -> set[tuple[int, int]]:
    return {
        (first, second)
        for second, count in enumerate(counts)
        for first, other in enumerate(counts[:second])
        if abs(count - other) <= _MIRROR
    }


def _reason(error: SamplerReadError, root: Path) -> str:
    if isinstance(error.__cause__, PermissionError):
        return (
            "RAPL: the counters may be read by root alone; who administers the machine can allow"
            f" it: chmod a+r {root}/intel-rapl:*/energy_uj"
        )
    return f"RAPL: {error}"
