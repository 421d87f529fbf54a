"""What every source of measurements has to keep; a source's test class inherits it."""

from __future__ import annotations

import os
import signal
import threading
from abc import ABC, abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from provml_lightning.domain.catalogue import SYSTEM_METRICS
from provml_lightning.samplers.interval import Cursor
from provml_lightning.samplers.sampler import Sampler
from tests.fakes.clock import ManualClock

if TYPE_CHECKING:
    from pathlib import Path

    from provml_lightning.samplers.base import Opened

__all__ = ["SamplerKit"]

UNITS = {"J", "%", "s", "B", "°C"}
NOT_IN_DOCUMENTS = {"process_time"}  # sources of channels that are no system metric
SOURCES = {source for metric in SYSTEM_METRICS for source in metric.sources} | NOT_IN_DOCUMENTS


class SamplerKit(ABC):
    """Inherit, and say how to open the source with and without its hardware.

    Attributes:
        watts: What its energy channels draw together, constantly [W].
    """

    watts: dict[str, float]

    @abstractmethod
    def opened(self, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Opened:
        """Open the source where its hardware is there and answers."""

    @abstractmethod
    def missing(self, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Opened:
        """Open the source where its hardware is not there."""

    def go_on(self, clock: ManualClock, seconds: float) -> None:
        """Let time pass, for the hardware too."""
        clock.sleep(seconds)

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def source(self, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Any:
        opened = self.opened(tmp_path, clock, monkeypatch)
        yield opened
        for close in opened.close:
            close()

    def test_every_channel_has_a_unit_and_a_source_of_the_catalogue(self, source: Opened) -> None:
        assert source.channels
        for channel in source.channels:
            assert channel.about.unit in UNITS
            assert channel.about.source in SOURCES

    def test_names_are_told_once(self, source: Opened) -> None:
        names = [channel.name for channel in source.channels]
        assert len(names) == len(set(names))

    def test_each_channel_tells_an_amount_or_a_level(
        self, source: Opened, clock: ManualClock
    ) -> None:
        snapshot = Sampler(source.channels, clock=clock).began
        told = [*snapshot.totals, *snapshot.levels]
        assert sorted(told) == sorted(channel.name for channel in source.channels)
        assert all(total.amount == 0 for total in snapshot.totals.values())

    def test_amounts_begin_at_zero_and_never_shrink(
        self, source: Opened, clock: ManualClock
    ) -> None:
        sampler = Sampler(source.channels, clock=clock)
        snapshots = []
        for _ in range(5):
            self.go_on(clock, 0.5)
            snapshots.append(sampler.tick().totals)
        for before, after in pairwise(snapshots):
            assert all(after[name].amount >= total.amount for name, total in before.items())

    def test_energy_is_power_times_time_however_it_is_parted(
        self, source: Opened, clock: ManualClock
    ) -> None:
        sampler = Sampler(source.channels, clock=clock)
        often, once = Cursor(sampler), Cursor(sampler)
        parts: dict[str, int] = dict.fromkeys(self.watts, 0)
        for seconds in (0.25, 1.5, 0.05, 2.2):  # 4 s
            self.go_on(clock, seconds)
            interval = often.advance()
            for name in self.watts:
                parts[name] += interval.billionths(name) or 0
        whole = once.advance()
        for name, watts in self.watts.items():
            assert whole.amount(name) == pytest.approx(4 * watts, rel=1e-6)
            assert whole.rate(name) == pytest.approx(watts, rel=1e-6)
            assert parts[name] == whole.billionths(name)

    def test_hardware_that_is_not_there_is_absent(
        self, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = self.missing(tmp_path / "nothing", clock, monkeypatch)
        assert not [channel for channel in opened.channels if channel.name in self.watts]

    def test_it_prints_nothing_starts_no_thread_and_takes_no_signal(
        self,
        tmp_path: Path,
        clock: ManualClock,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        def state() -> list[Any]:
            return [threading.active_count(), *map(signal.getsignal, (2, 15)), dict(os.environ)]

        before = state()
        opened = self.opened(tmp_path, clock, monkeypatch)
        for close in opened.close:
            close()
        assert state() == before
        assert capfd.readouterr() == ("", "")
