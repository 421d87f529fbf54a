from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from provml_lightning.samplers.amd import open_amd
from provml_lightning.samplers.interval import Cursor
from provml_lightning.samplers.sampler import Sampler
from tests.fakes.amdsmi import FakeAmdSmi, FakeCard

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from provml_lightning.samplers.base import Opened
    from tests.fakes.clock import ManualClock

    Install = Callable[[Any], Any]


def found(
    clock: ManualClock, environ: Mapping[str, str] | None = None, rank: int | None = None
) -> Opened:
    return open_amd(environ or {}, rank, pause=clock.sleep, clock=clock)


def energy_of_a_second(clock: ManualClock, opened: Opened) -> tuple[float | None, str]:
    cursor = Cursor(Sampler(opened.channels, clock=clock))
    clock.sleep(1)
    interval = cursor.advance()
    return interval.amount("gpu.energy"), interval.source("gpu.energy")


@pytest.mark.parametrize("name", ["energy_accumulator", "power"])
def test_the_counter_is_read_under_either_of_its_names(
    clock: ManualClock, installed: Install, name: str
) -> None:
    installed(FakeAmdSmi(clock, FakeCard(energy_field=name), FakeCard(watts=100.0)))
    joules, source = energy_of_a_second(clock, found(clock))
    assert joules == pytest.approx(300.0, abs=0.001)
    assert source == "amdsmi.energy"


def test_the_cards_are_told_by_name_and_one_without_a_name_by_its_id(
    clock: ManualClock, installed: Install
) -> None:
    installed(FakeAmdSmi(clock, FakeCard(), FakeCard(name="N/A")))
    assert found(clock).hardware == {"gpu": "Instinct MI300X (GPU-card-0), GPU-card-1"}


@pytest.mark.parametrize("wrong", [100.0, 0.01, 0.0])
def test_a_counter_far_from_the_power_is_not_believed_and_that_is_said(
    clock: ManualClock, installed: Install, wrong: float
) -> None:
    # ROCm/amdsmi #38.
    installed(FakeAmdSmi(clock, FakeCard(wrong=wrong)))
    opened = found(clock)
    assert energy_of_a_second(clock, opened) == (200.0, "amdsmi.power")
    assert any("gpu_energy integrates power: the counter of" in text for text in opened.remarks)


@pytest.mark.parametrize("name", ["current_socket_power", "average_socket_power"])
def test_power_is_the_field_that_is_a_number(
    clock: ManualClock, installed: Install, name: str
) -> None:
    installed(FakeAmdSmi(clock, FakeCard(power_field=name, wrong=100.0)))
    assert energy_of_a_second(clock, found(clock))[0] == 200.0


def test_a_card_whose_second_die_reads_zero_is_counted_once(
    clock: ManualClock, installed: Install
) -> None:
    installed(FakeAmdSmi(clock, FakeCard(), FakeCard(watts=0.0)))
    assert energy_of_a_second(clock, found(clock))[0] == pytest.approx(200.0, abs=0.001)


def test_a_second_die_alone_has_no_energy_rather_than_none_at_all(
    clock: ManualClock, installed: Install
) -> None:
    installed(FakeAmdSmi(clock, FakeCard(), FakeCard(watts=0.0)))
    opened = found(clock, {"HIP_VISIBLE_DEVICES": "1"})
    assert "gpu.energy" not in {channel.name for channel in opened.channels}


def test_what_a_card_cannot_tell_is_absent(clock: ManualClock, installed: Install) -> None:
    installed(FakeAmdSmi(clock, FakeCard(usage="N/A")))
    opened = found(clock)
    names = {channel.name for channel in opened.channels}
    assert names == {"gpu.energy", "gpu.memory", "gpu.temperature"}
    assert "not told: gfx_activity is 'N/A'" in opened.remarks


def test_levels_are_bytes_and_degrees(clock: ManualClock, installed: Install) -> None:
    # 1024 of 65536 MiB; some versions tell thousandths of a degree.
    installed(FakeAmdSmi(clock, FakeCard(temperature=55_000), FakeCard(temperature=44)))
    levels = Sampler(found(clock).channels, clock=clock).poll().levels
    assert levels["gpu.memory"][1:] == (2 * 2**30, 128 * 2**30)
    assert levels["gpu.temperature"].value == 55.0


def test_cards_are_counted_as_hip_counts_them(clock: ManualClock, installed: Install) -> None:
    installed(FakeAmdSmi(clock, FakeCard(watts=30.0, hip_id=1), FakeCard(watts=40.0, hip_id=0)))
    opened = found(clock, {"HIP_VISIBLE_DEVICES": "0"})
    assert energy_of_a_second(clock, opened)[0] == pytest.approx(40.0, abs=0.001)


def test_a_library_without_its_driver_is_a_remark_whatever_it_raises_and_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    clock: ManualClock,
) -> None:  # fmt: skip
    (tmp_path / "amdsmi.py").write_text('print("noise"); raise KeyError("libamd_smi.so")')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "amdsmi", raising=False)
    opened = found(clock)
    assert not opened.channels
    assert opened.remarks == [
        "AMD: no amdsmi, or no driver (KeyError: 'libamd_smi.so')",
    ]
    assert capsys.readouterr().out == ""


def test_the_library_s_own_noise_is_not_shown(
    clock: ManualClock, installed: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(FakeAmdSmi(clock, FakeCard()))
    found(clock)
    assert capsys.readouterr().out == ""
