from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provml_lightning.errors import SamplerReadError
from provml_lightning.samplers.rapl import POWERCAP, open_cores, open_rapl, powercap_of
from tests.fakes.kernel import RANGE, Zone

if TYPE_CHECKING:
    from collections.abc import Callable

    from provml_lightning.samplers.base import Channel, Opened

JOULE = 1_000_000  # [µJ]
NANO = 1_000_000_000


def opened(root: Path, pause: Callable[[float], object] = lambda _: None) -> dict[str, Channel]:
    return {channel.name: channel for channel in found(root, pause).channels}


def found(root: Path, pause: Callable[[float], object] = lambda _: None) -> Opened:
    return open_rapl(root, pause=pause)


def test_the_cpu_is_the_sum_of_the_packages_and_the_ram_that_of_their_dram(tmp_path: Path) -> None:
    packages = [Zone(tmp_path, f"intel-rapl:{n}", f"package-{n}", n * 500 * JOULE) for n in (0, 1)]
    drams = [
        Zone(tmp_path, f"intel-rapl:{n}/intel-rapl:{n}:1", "dram", (n + 7) * 100 * JOULE)
        for n in (0, 1)
    ]
    cores = Zone(tmp_path, "intel-rapl:0/intel-rapl:0:0", "core", 0)
    channels = opened(tmp_path)
    for channel in channels.values():
        channel.advance(0)

    packages[0].set(30 * JOULE)
    packages[1].set(520 * JOULE)
    drams[0].set(704 * JOULE)
    drams[1].set(801 * JOULE)
    cores.set(1_000_000 * JOULE)
    for channel in channels.values():
        channel.advance(1)

    assert channels["cpu.energy"].total == (1, 50 * NANO)
    assert channels["ram.energy"].total == (1, 5 * NANO)
    assert channels["cpu.energy"].about[:2] == ("J", "rapl")


def test_ten_joules_across_the_wrap_are_ten_joules(tmp_path: Path) -> None:
    zone = Zone(tmp_path, "intel-rapl:0", "package-0", RANGE - 4 * JOULE)
    channel = opened(tmp_path)["cpu.energy"]
    channel.advance(0)
    zone.set(6 * JOULE)
    channel.advance(1)
    assert channel.total == (1, 10 * NANO)


def test_a_counter_without_a_readable_range_goes_on_after_its_wrap(tmp_path: Path) -> None:
    zone = Zone(tmp_path, "intel-rapl:0", "package-0", 900, wraps="unknown")
    channel = opened(tmp_path)["cpu.energy"]
    for count in (900, 1000, 10, 30):
        zone.set(count)
        channel.advance(0)
    assert channel.total == (0, 120_000)


def test_the_memory_mapped_twin_is_not_counted_again(tmp_path: Path) -> None:
    real = Zone(tmp_path, "intel-rapl:0", "package-0", 5 * JOULE)
    twin = Zone(tmp_path, "intel-rapl-mmio:0", "package-0", 900 * JOULE)
    channel = opened(tmp_path)["cpu.energy"]
    channel.advance(0)
    real.set(8 * JOULE)
    twin.set(903 * JOULE)
    channel.advance(1)
    assert channel.total == (1, 3 * NANO)


def test_the_memory_mapped_interface_is_taken_where_it_is_the_only_one(tmp_path: Path) -> None:
    Zone(tmp_path, "intel-rapl-mmio:0", "package-0", 900 * JOULE)
    assert list(opened(tmp_path)) == ["cpu.energy"]


def test_a_die_whose_counter_is_another_s_is_counted_once(tmp_path: Path) -> None:
    # codecarbon #1274: two dies of one package show the same counter.
    zones = [Zone(tmp_path, f"intel-rapl:{n}", f"package-0-die-{n}", 77 * JOULE) for n in (0, 1)]

    def pause(_: float) -> None:
        for zone in zones:
            zone.set(79 * JOULE)

    channel = opened(tmp_path, pause)["cpu.energy"]
    channel.advance(0)
    for zone in zones:
        zone.set(89 * JOULE)
    channel.advance(1)
    assert channel.total == (1, 10 * NANO)


def test_two_packages_that_happened_to_show_the_same_are_counted_both(tmp_path: Path) -> None:
    zones = [Zone(tmp_path, f"intel-rapl:{n}", f"package-{n}", 77 * JOULE) for n in (0, 1)]
    channel = opened(tmp_path, lambda _: zones[0].set(90 * JOULE))["cpu.energy"]
    channel.advance(0)
    zones[0].set(100 * JOULE)
    zones[1].set(80 * JOULE)
    channel.advance(1)
    assert channel.total == (1, 13 * NANO)


def test_the_platform_is_not_added_to_its_packages(tmp_path: Path) -> None:
    # codecarbon PR 950.
    Zone(tmp_path, "intel-rapl:1", "psys", 900 * JOULE)
    package = Zone(tmp_path, "intel-rapl:0", "package-0", 0)
    channel = opened(tmp_path)["cpu.energy"]
    channel.advance(0)
    package.set(JOULE)
    channel.advance(1)
    assert channel.total == (1, NANO)
    assert channel.about.source == "rapl"


def test_the_platform_stands_in_where_there_is_no_package_and_is_called_so(tmp_path: Path) -> None:
    Zone(tmp_path, "intel-rapl:1", "psys", 900 * JOULE)
    assert opened(tmp_path)["cpu.energy"].about.source == "rapl.psys"


def test_sub_zones_that_are_shown_twice_are_one(tmp_path: Path) -> None:
    zone = Zone(tmp_path, "intel-rapl:0", "package-0", 0)
    dram = Zone(tmp_path, "intel-rapl:0/intel-rapl:0:1", "dram", 0)
    (tmp_path / "intel-rapl:0:1").symlink_to(dram.folder)
    channels = opened(tmp_path)
    channels["ram.energy"].advance(0)
    dram.set(2 * JOULE)
    zone.set(JOULE)
    channels["ram.energy"].advance(1)
    assert channels["ram.energy"].total == (1, 2 * NANO)


@pytest.mark.parametrize("nonsense", ["", "not a number"])
def test_a_counter_that_tells_nonsense_is_an_error_and_then_caught_up(
    tmp_path: Path, nonsense: str
) -> None:
    zone = Zone(tmp_path, "intel-rapl:0", "package-0", 0)
    channel = opened(tmp_path)["cpu.energy"]
    channel.advance(0)
    zone.set(nonsense)
    with pytest.raises(SamplerReadError, match="energy_uj"):
        channel.advance(1)
    assert channel.total == (0, 0)
    zone.set(3 * JOULE)
    channel.advance(2)
    assert channel.total == (2, 3 * NANO)


def test_a_machine_without_it_has_no_channels_and_says_so(tmp_path: Path) -> None:
    nothing = found(tmp_path / "powercap")
    assert not nothing.channels
    assert nothing.remarks == [f"RAPL: {tmp_path}/powercap has no zone intel-rapl"]


def test_counters_that_root_alone_may_read_are_one_hint_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # carbontracker #40: PermissionError killed the run.
    Zone(tmp_path, "intel-rapl:0", "package-0", 0)
    Zone(tmp_path, "intel-rapl:0/intel-rapl:0:1", "dram", 0)
    real = os.open

    def refusing(path: object, *flags: int) -> int:
        if str(path).endswith("energy_uj"):
            raise PermissionError(13, "Permission denied")
        return real(path, *flags)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refusing)  # root may read what chmod 000 forbids
    refused = found(tmp_path)
    assert not refused.channels
    assert len(refused.remarks) == 1
    assert "chmod a+r" in refused.remarks[0]


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_its_files_are_closed_at_the_end(tmp_path: Path) -> None:
    Zone(tmp_path, "intel-rapl:0", "package-0", 0)
    before = open_files()
    source = found(tmp_path)
    source.channels[0].advance(0)
    assert open_files() == before + 1
    for close in source.close:
        close()
    assert open_files() == before


def test_the_cores_are_told_apart_from_their_packages_where_that_is_asked_for(
    tmp_path: Path,
) -> None:
    cores = [
        Zone(tmp_path, f"intel-rapl:{n}/intel-rapl:{n}:0", "core", n * 500 * JOULE) for n in (0, 1)
    ]
    (channel,) = open_cores({"PROVML_POWERCAP": str(tmp_path)}).channels
    channel.advance(0)
    cores[0].set(3 * JOULE)
    cores[1].set(504 * JOULE)
    channel.advance(1)
    assert channel.name == "cpu.core_energy"
    assert channel.total == (1, 7 * NANO)


def test_cores_that_cannot_be_read_are_absent(tmp_path: Path) -> None:
    Zone(tmp_path, "intel-rapl:0/intel-rapl:0:0", "core", 0).set("nonsense")
    assert open_cores({"PROVML_POWERCAP": str(tmp_path)}).channels == ()
    assert open_cores({"PROVML_POWERCAP": str(tmp_path / "none")}).channels == ()


def test_the_environment_says_where_powercap_is() -> None:
    assert powercap_of({"PROVML_POWERCAP": "/host/powercap"}) == Path("/host/powercap")
    assert powercap_of({}) == powercap_of({"PROVML_POWERCAP": ""}) == POWERCAP
