from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from provml_lightning.errors import SamplerReadError
from provml_lightning.samplers.base import About
from provml_lightning.samplers.cgroups import memory_group
from provml_lightning.samplers.host import CpuUsage, cpu_times, open_host, open_process
from provml_lightning.samplers.interval import Cursor
from provml_lightning.samplers.sampler import Sampler
from tests.fakes.kernel import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fakes.clock import ManualClock

GIB = 2**30
UNLIMITED = "9223372036854771712"


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_usage_is_the_busy_share_of_the_ticks_between(tmp_path: Path, clock: ManualClock) -> None:
    # user nice system idle iowait irq softirq steal guest guest_nice
    write_files(tmp_path, {"stat": "cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 …\n"})
    times, source, close = cpu_times(tmp_path)
    sampler = Sampler([CpuUsage("cpu.usage", About("%", source), times)], clock=clock)
    cursor = Cursor(sampler)

    # 80 ticks more: 20 of users (all of it of a guest), 10 of the system, 40 idle, 10 waiting.
    write_files(tmp_path, {"stat": "cpu  120 0 60 840 60 0 0 0 20 0\ncpu0 …\n"})
    clock.sleep(2)
    interval = cursor.advance()
    close()

    assert interval.rate("cpu.usage") == 37.5
    assert interval.source("cpu.usage") == "procfs"


def test_usage_within_one_tick_is_absent_and_told_with_the_next(
    tmp_path: Path, clock: ManualClock
) -> None:
    write_files(tmp_path, {"stat": "cpu  100 0 0 100 0 0 0 0\n"})
    times, _, close = cpu_times(tmp_path)
    cursor = Cursor(Sampler([CpuUsage("cpu.usage", About("%", "procfs"), times)], clock=clock))
    clock.sleep(0.004)
    assert cursor.advance().amount("cpu.usage") is None
    write_files(tmp_path, {"stat": "cpu  101 0 0 101 0 0 0 0\n"})
    clock.sleep(0.006)
    assert cursor.advance().amount("cpu.usage") == 0.5  # 50 % over both: 10 ms
    close()


def test_idle_time_that_steps_back_is_no_negative_usage(tmp_path: Path, clock: ManualClock) -> None:
    write_files(tmp_path, {"stat": "cpu  100 0 0 100 50 0 0 0\n"})
    times, _, close = cpu_times(tmp_path)
    cursor = Cursor(Sampler([CpuUsage("cpu.usage", About("%", "procfs"), times)], clock=clock))
    write_files(tmp_path, {"stat": "cpu  110 0 0 100 41 0 0 0\n"})
    clock.sleep(1)
    assert cursor.advance().rate("cpu.usage") == 100.0
    close()


def test_a_stat_file_of_something_else_is_an_error(tmp_path: Path) -> None:
    write_files(tmp_path, {"stat": "intr 1 2 3\n"})
    times, _, close = cpu_times(tmp_path)
    with pytest.raises(SamplerReadError, match="not with 'cpu'"):
        times()
    close()


def test_without_procfs_the_times_are_psutil_s(tmp_path: Path) -> None:
    times, source, _ = cpu_times(tmp_path / "none")
    busy, whole = times()
    assert source == "psutil"
    assert 0 < busy < whole


def test_the_first_usage_under_load_is_no_zero_whatever_thread_asks() -> None:
    # psutil #1703, #1095: the first answer in every new thread was 0.0.
    times, source, close = cpu_times()
    sampler = Sampler([CpuUsage("cpu.usage", About("%", source), times)])
    told: list[float | None] = []
    cursors = [Cursor(sampler) for _ in range(10)]
    burn(0.2)
    threads = [
        threading.Thread(target=lambda c=cursor: told.append(c.advance().rate("cpu.usage")))
        for cursor in cursors
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    close()
    assert len(told) == 10
    assert all(usage is not None and 1 < usage <= 100 for usage in told)


def test_what_another_library_asks_of_psutil_changes_nothing(
    tmp_path: Path, clock: ManualClock
) -> None:
    write_files(tmp_path, {"stat": "cpu  0 0 0 0 0 0 0 0\n"})
    times, _, close = cpu_times(tmp_path)
    cursor = Cursor(Sampler([CpuUsage("cpu.usage", About("%", "procfs"), times)], clock=clock))
    write_files(tmp_path, {"stat": "cpu  30 0 0 70 0 0 0 0\n"})
    psutil.cpu_percent()
    clock.sleep(1)
    assert cursor.advance().rate("cpu.usage") == 30.0
    close()


def test_the_time_of_this_process_is_what_it_burned() -> None:
    sampler = Sampler(open_process().channels)
    cursor = Cursor(sampler)
    burn(0.3)
    spent = cursor.advance().amount("process.cpu")
    assert spent is not None
    assert 0.28 <= spent < 0.6


def test_bytes_that_a_container_hides_are_absent_from_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hidden(*_: object) -> None:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil.Process, "io_counters", hidden)
    names = {channel.name for channel in open_process().channels}
    assert names == {"process.cpu", "process.ram"}


def test_this_process_s_memory_and_bytes_are_told(tmp_path: Path) -> None:
    sampler = Sampler(open_process().channels)
    cursor = Cursor(sampler)
    (tmp_path / "file").write_bytes(bytes(3_000_000))
    os.sync()
    sampler.tick()
    interval = cursor.advance()
    level = interval.level("process.ram")
    assert level is not None
    assert level.value == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)
    assert interval.amount("process.read") is not None
    assert (interval.amount("process.written") or 0) >= 0


def test_the_machine_s_levels_are_those_of_psutil(tmp_path: Path) -> None:
    opened = open_host(tmp_path, cgroups=tmp_path)
    snapshot = Sampler(opened.channels, close=opened.close).poll()
    usage = psutil.disk_usage(str(tmp_path))
    disk, ram = snapshot.levels["disk"], snapshot.levels["ram"]
    assert disk.value == pytest.approx(usage.used, rel=0.05)
    assert disk.capacity is not None
    assert 100 * disk.value / disk.capacity == pytest.approx(usage.percent, abs=1)
    assert ram.capacity == psutil.virtual_memory().total
    assert {"network.received", "network.sent"} <= snapshot.totals.keys()
    for close in opened.close:
        close()


V2 = {
    "proc/self/cgroup": "0::/user/job\n",
    "cg/user/memory.max": f"{100 * GIB}\n",
    "cg/user/memory.current": f"{50 * GIB}\n",
    "cg/user/memory.stat": f"anon 5\ninactive_file {20 * GIB}\n",
    "cg/user/job/memory.max": "max\n",
    "cg/user/job/memory.current": f"{40 * GIB}\n",
    "cg/user/job/memory.stat": "inactive_file 0\n",
}
V1 = {
    "proc/self/cgroup": "5:cpuset:/\n4:memory:/user/job\n1:name=systemd:/\n",
    "cg/memory/memory.limit_in_bytes": UNLIMITED,
    "cg/memory/memory.usage_in_bytes": f"{900 * GIB}",
    "cg/memory/user/memory.limit_in_bytes": f"{100 * GIB}",
    "cg/memory/user/memory.usage_in_bytes": f"{50 * GIB}",
    "cg/memory/user/memory.stat": f"inactive_file 1\ntotal_inactive_file {20 * GIB}\n",
    "cg/memory/user/job/memory.limit_in_bytes": UNLIMITED,
    "cg/memory/user/job/memory.usage_in_bytes": f"{40 * GIB}",
}
HYBRID = {**V1, "proc/self/cgroup": "4:memory:/user/job\n0::/\n", "cg/unified/cgroup.procs": ""}
BOTH = {**V2, "proc/self/cgroup": "4:memory,cpu:/\n0::/user/job\n"}


@pytest.mark.parametrize("files", [V1, V2, HYBRID, BOTH], ids=["v1", "v2", "hybrid", "both"])
def test_ram_in_a_container_is_that_of_the_ancestor_with_the_least_limit(
    tmp_path: Path, files: dict[str, str]
) -> None:
    # codecarbon #629, #523: a pod of 100 GB was charged for a node of 1 TB.
    write_files(tmp_path, files)
    group = memory_group(tmp_path / "proc", tmp_path / "cg", 1024 * GIB)
    assert group is not None
    assert group.limit == 100 * GIB
    assert group.used() == 30 * GIB  # without the page cache that can be dropped


def test_a_path_of_the_host_s_falls_back_to_the_root_that_the_container_sees(
    tmp_path: Path,
) -> None:
    write_files(
        tmp_path,
        {
            "proc/self/cgroup": "0::/kubepods/pod1/container2\n",
            "cg/memory.max": f"{8 * GIB}",
            "cg/memory.current": f"{GIB}",
            "cg/memory.stat": "",
        },
    )
    group = memory_group(tmp_path / "proc", tmp_path / "cg", 64 * GIB)
    assert group is not None
    assert (group.limit, group.used()) == (8 * GIB, GIB)


@pytest.mark.parametrize("limit", ["max", UNLIMITED, str(64 * GIB), "nonsense"])
def test_a_limit_that_is_none_is_none(tmp_path: Path, limit: str) -> None:
    files = {"cg/memory.max": limit, "cg/memory.current": "1", "proc/self/cgroup": "0::/\n"}
    write_files(tmp_path, files)
    assert memory_group(tmp_path / "proc", tmp_path / "cg", 64 * GIB) is None


def test_a_system_without_groups_has_none(tmp_path: Path) -> None:
    assert memory_group(tmp_path / "proc", tmp_path / "cg", 64 * GIB) is None


def test_the_ram_of_the_host_channel_is_the_group_s(tmp_path: Path) -> None:
    small = {
        "proc/stat": "cpu  1 0 0 1 0 0 0 0\n",
        "proc/self/cgroup": "0::/\n",
        "cg/memory.max": "100000000",
        "cg/memory.current": "60000000",
        "cg/memory.stat": "inactive_file 10000000\n",
    }
    write_files(tmp_path, small)
    opened = open_host(tmp_path, proc=tmp_path / "proc", cgroups=tmp_path / "cg")
    sampler = Sampler(opened.channels, close=opened.close)
    snapshot = sampler.poll()
    sampler.stop()
    assert snapshot.levels["ram"][1:] == (50_000_000, 100_000_000)
    assert snapshot.about["ram"].source == "cgroup"
