from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provml_lightning.errors import ConfigurationError
from provml_lightning.samplers.base import About
from provml_lightning.samplers.host import CpuUsage
from provml_lightning.samplers.interval import Cursor
from provml_lightning.samplers.models import Tdp, cpu_model, cpu_tdp, dimm_power, ram_model
from provml_lightning.samplers.sampler import Sampler
from tests.fakes.kernel import write_files

if TYPE_CHECKING:
    from tests.fakes.clock import ManualClock

NOWHERE = Path("/nowhere")


def processor(name: str, sockets: int = 1, flags: str = "fpu sse") -> str:
    return "".join(
        f"processor\t: {n}\nmodel name\t: {name}\nphysical id\t: {n}\nflags\t\t: {flags}\n\n"
        for n in range(sockets)
    )


@pytest.mark.parametrize(
    ("busy", "joules"),
    [(0, 20.0), (50, 110.0), (100, 200.0)],  # of 100 W over 2 s, a tenth of it when idle
)
def test_the_cpu_draws_a_tenth_when_idle_and_the_rest_in_proportion(
    clock: ManualClock, busy: int, joules: float
) -> None:
    ticks = [0.0, 0.0]
    usage = CpuUsage("cpu.usage", About("%", "procfs"), lambda: (ticks[0], ticks[1]))
    model, told = cpu_model(usage, Tdp(100.0, "a test"), {})
    cursor = Cursor(Sampler([usage, model], clock=clock))
    ticks[:] = [busy, 100]
    clock.sleep(2)
    interval = cursor.advance()

    assert interval.amount("cpu.energy") == joules
    assert interval.source("cpu.energy") == "model.tdp"
    assert "100 W under full load (a test), 0.1 of it when idle" in told


def test_the_model_is_absent_while_the_usage_is(clock: ManualClock) -> None:
    broken = False

    def times() -> tuple[float, float]:
        if broken:
            raise OSError("no")
        return 0.0, clock.now

    usage = CpuUsage("cpu.usage", About("%", "procfs"), times)
    model, _ = cpu_model(usage, Tdp(100.0, "a test"), {})
    cursor = Cursor(Sampler([usage, model], clock=clock))
    broken = True
    clock.sleep(1)
    assert cursor.advance().amount("cpu.energy") is None
    broken = False
    clock.sleep(1)
    assert cursor.advance().amount("cpu.energy") == 20.0


@pytest.mark.parametrize(
    ("gib", "watts"),
    # Computed by hand from CodeCarbon 3's rules, and seen in its output.
    [(1, 10), (2, 10), (8, 10), (16, 10), (24, 20), (32, 20), (64, 20), (128, 38), (512, 38),
     (1024, 38), (2048, 70)],
)  # fmt: skip
def test_ram_draws_what_codecarbon_says(gib: float, watts: float) -> None:
    assert dimm_power(gib) == pytest.approx(watts)


def test_ram_on_arm_draws_less() -> None:
    assert dimm_power(8, arm=True) == 3.0
    assert dimm_power(64, arm=True) == 6.0


def test_the_ram_s_model_says_what_it_assumes(clock: ManualClock) -> None:
    channel, told = ram_model(24 * 2**30, {"PROVML_RAM_POWER_W": "7.5"})
    cursor = Cursor(Sampler([channel], clock=clock))
    clock.sleep(4)
    assert cursor.advance().amount("ram.energy") == 30.0
    assert told == "the RAM's energy is modelled (model.dimm): always 7.5 W (PROVML_RAM_POWER_W)"


def test_the_power_limits_of_the_packages_are_believed_before_a_table(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "intel-rapl:0/name": "package-0\n",
            "intel-rapl:0/constraint_0_max_power_uw": "125000000\n",
            "intel-rapl:1/name": "package-1\n",
            "intel-rapl:1/constraint_0_max_power_uw": "125000000\n",
            "intel-rapl:2/name": "psys\n",
            "intel-rapl:2/constraint_0_max_power_uw": "400000000\n",
        },
    )
    assert cpu_tdp({}, proc=tmp_path, powercap=tmp_path)[0] == 250.0


@pytest.mark.parametrize(
    ("name", "sockets", "watts"),
    [
        ("AMD EPYC 7742 64-Core Processor", 2, 450.0),
        ("AMD Ryzen 9 5950X 16-Core Processor", 1, 105.0),
        ("Intel(R) Xeon(R) Platinum 8480+", 1, 350.0),
    ],
)
def test_a_known_cpu_is_found_by_its_name(
    tmp_path: Path, name: str, sockets: int, watts: float
) -> None:
    write_files(tmp_path, {"cpuinfo": processor(name, sockets)})
    assert cpu_tdp({}, proc=tmp_path, powercap=NOWHERE).watts == watts


@pytest.mark.parametrize(
    "cpuinfo",
    ["", processor("Mystery 9000"), processor("AMD EPYC 7742 64-Core Processor", 1, "hypervisor")],
    ids=["untold", "unknown", "virtual"],
)
def test_an_unknown_cpu_and_a_virtual_one_draw_four_watts_a_thread(
    tmp_path: Path, cpuinfo: str
) -> None:
    write_files(tmp_path, {"cpuinfo": cpuinfo})
    tdp = cpu_tdp({}, proc=tmp_path, powercap=NOWHERE)
    assert tdp.watts == 4.0 * (os.cpu_count() or 1)
    assert "4 W for each of" in tdp.known_from


def test_what_the_user_says_comes_first(tmp_path: Path) -> None:
    chosen = cpu_tdp({"PROVML_CPU_TDP_W": "65"}, proc=tmp_path, powercap=NOWHERE)
    assert chosen == (65.0, "PROVML_CPU_TDP_W")


@pytest.mark.parametrize("text", ["much", "-1", "nan", "inf"])
def test_what_the_user_says_must_be_a_number(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"PROVML_CPU_TDP_W='{text}' must be a number"):
        cpu_tdp({"PROVML_CPU_TDP_W": text}, proc=tmp_path, powercap=NOWHERE)


def test_an_idle_share_above_one_is_refused() -> None:
    usage = CpuUsage("cpu.usage", About("%", "procfs"), lambda: (0.0, 0.0))
    with pytest.raises(ConfigurationError, match="from 0 to 1"):
        cpu_model(usage, Tdp(1.0, "a test"), {"PROVML_CPU_IDLE_FRACTION": "10"})
