from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provml_lightning.errors import SamplerReadError, SamplerUnavailableError
from provml_lightning.samplers.base import About, Accumulated, Channel, Counter, Gauge, Integral
from provml_lightning.samplers.interval import Cursor
from provml_lightning.samplers.sampler import Sampler
from tests.fakes.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable

JOULES = About("J", "test")
NANO = 1_000_000_000


def energy(read: Callable[[], int], *, background: bool = False) -> Channel:
    return Accumulated("energy", JOULES, [Counter(read, 1)], background=background)


def growing(clock: ManualClock, watts: int = 100) -> Callable[[], int]:
    return lambda: watts * clock.now  # nanojoules


def test_an_interval_is_what_happened_since_the_caller_last_asked(clock: ManualClock) -> None:
    sampler = Sampler([energy(growing(clock))], clock=clock)
    cursor = Cursor(sampler)

    clock.sleep(2.0)
    first = cursor.advance()
    clock.sleep(0.25)
    second = cursor.advance()

    assert first.amount("energy") == 200.0
    assert second.amount("energy") == 25.0
    assert first.rate("energy") == 100.0
    assert first.source("energy") == "test"


def test_the_intervals_of_each_caller_add_up_to_the_whole_by_themselves(
    clock: ManualClock,
) -> None:
    sampler = Sampler([energy(growing(clock, 3))], clock=clock)
    one, other = Cursor(sampler), Cursor(sampler)
    told = 0
    for step in range(10):
        clock.sleep(0.1)
        told += one.advance().billionths("energy") or 0
        if step == 4:
            other.advance()

    assert told == 3 * NANO
    assert other.advance().billionths("energy") == 1_500_000_000


@given(
    increments=st.lists(st.integers(0, 10**12), min_size=1, max_size=40),
    asking=st.lists(st.booleans(), min_size=40, max_size=40),
    ticking=st.lists(st.booleans(), min_size=40, max_size=40),
)
def test_however_the_time_is_parted_the_parts_are_the_whole(
    increments: list[int], asking: list[bool], ticking: list[bool]
) -> None:
    clock, count = ManualClock(), 0
    sampler = Sampler([energy(lambda: count)], clock=clock)
    often, last = Cursor(sampler), Cursor(sampler)
    parts = []
    for increment, asked, ticked in zip(increments, asking, ticking, strict=False):
        clock.sleep(0.01)
        count += increment
        if ticked:
            sampler.tick()
        if asked:
            parts.append(often.advance().billionths("energy"))
    clock.sleep(0.01)
    parts.append(often.advance().billionths("energy"))

    assert None not in parts
    assert sum(part or 0 for part in parts) == sum(increments)
    assert last.advance().billionths("energy") == sum(increments)


def test_who_takes_stages_alone_leaves_the_time_between_them_to_who_asks_for_all(
    clock: ManualClock,
) -> None:
    watts, told = [1, 100, 3, 200, 5], 0

    def read() -> int:
        return told

    def pass_second(power: int) -> None:
        nonlocal told
        clock.sleep(1.0)
        told += power * NANO

    cursor = Cursor(Sampler([energy(read)], clock=clock))
    pass_second(watts[0])
    cursor.leave()
    pass_second(watts[1])
    first = cursor.take()
    pass_second(watts[2])
    cursor.leave()
    pass_second(watts[3])
    second = cursor.take()
    pass_second(watts[4])
    rest = cursor.advance()

    assert first.amount("energy") == 100.0
    assert second.amount("energy") == 200.0
    assert second.rate("energy") == 200.0
    assert rest.amount("energy") == 1 + 3 + 5
    assert rest.rate("energy") == (1 + 3 + 5) / 3
    pass_second(7)
    assert cursor.advance().amount("energy") == 7.0  # nothing is left twice


@given(
    increments=st.lists(st.integers(0, 10**12), min_size=1, max_size=40),
    asked=st.lists(st.sampled_from(["take", "leave", "advance"]), min_size=40, max_size=40),
)
def test_whatever_is_taken_and_left_nothing_is_lost_and_nothing_twice(
    increments: list[int], asked: list[str]
) -> None:
    clock, count, told = ManualClock(), 0, 0
    cursor = Cursor(Sampler([energy(lambda: count)], clock=clock))
    held = None
    for increment, what in zip(increments, asked, strict=False):
        clock.sleep(0.01)
        count += increment
        if what == "take":
            part = cursor.take()
            held = part if held is None else part.after(held)
        elif what == "leave":
            cursor.leave()
        else:
            told += cursor.advance().billionths("energy") or 0
    clock.sleep(0.01)
    told += cursor.advance().billionths("energy") or 0
    assert told + (0 if held is None else held.billionths("energy") or 0) == sum(increments)


def test_two_intervals_are_one_without_the_time_between_them(clock: ManualClock) -> None:
    sampler = Sampler([energy(growing(clock, 50))], clock=clock)
    cursor = Cursor(sampler)
    clock.sleep(2.0)
    first = cursor.take()
    clock.sleep(100.0)
    cursor.leave()
    clock.sleep(1.0)
    both = cursor.take().after(first)

    assert both.amount("energy") == 150.0
    assert both.rate("energy") == 50.0
    assert both.source("energy") == "test"


def test_a_sensor_that_failed_in_the_second_of_two_intervals_tells_of_the_first(
    clock: ManualClock,
) -> None:
    broken = False

    def read() -> int:
        if broken:
            raise SamplerReadError("not now")
        return clock.now

    sampler = Sampler([energy(read)], clock=clock)
    cursor = Cursor(sampler)
    clock.sleep(1.0)
    first = cursor.take()
    broken = True
    clock.sleep(0.5)
    both = cursor.take().after(first)
    assert both.amount("energy") == 1.0
    broken = False
    clock.sleep(0.5)
    assert cursor.take().amount("energy") == 1.0  # what was missed is in the next


def test_a_rate_over_less_than_a_second_is_that_of_the_last_second(clock: ManualClock) -> None:
    # The counter is refreshed every 100 ms; power is 100 W all the time.
    sampler = Sampler([energy(lambda: clock.now // 10**8 * 10**8 * 100)], clock=clock)
    cursor = Cursor(sampler)
    for _ in range(4):
        clock.sleep(0.5)
        sampler.tick()
    cursor.advance()
    clock.sleep(0.01)
    interval = cursor.advance()

    assert interval.amount("energy") == 0.0
    assert interval.rate("energy") == pytest.approx(100, rel=0.02)


def test_a_rate_over_less_than_the_sensor_resolves_is_absent(clock: ManualClock) -> None:
    slow = About("J", "test", resolution=250_000_000)
    sampler = Sampler([Accumulated("energy", slow, [Counter(growing(clock), 1)])], clock=clock)
    cursor = Cursor(sampler)

    clock.sleep(0.2)
    assert cursor.advance().rate("energy") is None
    clock.sleep(0.2)
    assert cursor.advance().rate("energy") == 100.0


def test_a_sensor_that_fails_once_is_absent_and_then_caught_up(clock: ManualClock) -> None:
    broken = False

    def read() -> int:
        if broken:
            raise SamplerReadError("not now")
        return clock.now

    sampler = Sampler([energy(read)], clock=clock)
    cursor = Cursor(sampler)
    clock.sleep(1.0)
    broken = True
    interval = cursor.advance()
    assert interval.amount("energy") is None
    assert interval.rate("energy") is None
    broken = False
    clock.sleep(1.0)
    assert cursor.advance().amount("energy") == 2.0


def test_a_level_that_cannot_be_read_is_absent_and_never_the_one_before(clock: ManualClock) -> None:
    broken = False

    def read() -> tuple[float, float | None]:
        if broken:
            raise SamplerReadError("not now")
        return 7.0, 10.0

    sampler = Sampler([Gauge("level", About("B", "test"), read)], clock=clock)
    assert sampler.poll().levels["level"][1:] == (7.0, 10.0)
    broken = True
    sampler.tick()
    assert "level" not in sampler.poll().levels


@pytest.mark.parametrize("error", [SamplerReadError("no"), RuntimeError("a driver's bug")])
def test_a_sensor_that_fails_for_two_seconds_is_dropped_once(
    clock: ManualClock, error: Exception
) -> None:
    asked, dropped = 0, []

    def read() -> int:
        nonlocal asked
        asked += 1
        if asked > 1:
            raise error
        return 0

    sampler = Sampler([energy(read)], clock=clock, on_drop=lambda *told: dropped.append(told))
    for _ in range(10):
        clock.sleep(0.5)
        sampler.tick()

    assert dropped == [("energy", "test", error)]
    assert asked == 6  # at the opening, and at 0.5 s, 1.0 s, … 2.5 s, of which the last is 2 s late


def test_a_sensor_that_is_gone_for_good_is_dropped_at_once(clock: ManualClock) -> None:
    dropped = []
    gone = SamplerUnavailableError("the GPU is lost")

    def read() -> int:
        raise gone

    sampler = Sampler([energy(read)], clock=clock, on_drop=lambda *told: dropped.append(told))
    sampler.tick()
    assert dropped == [("energy", "test", gone)]
    assert sampler.poll().totals == {}


def test_a_snapshot_cannot_be_changed(clock: ManualClock) -> None:
    snapshot: Any = Sampler([energy(growing(clock))], clock=clock).poll()
    with pytest.raises(TypeError):
        snapshot.totals["energy"] = (0, 0)


def test_a_hung_disk_holds_nobody_who_asks(clock: ManualClock) -> None:
    hang, hung = threading.Event(), threading.Event()
    first = True

    def read() -> tuple[float, float | None]:
        nonlocal first
        if not first:
            hung.set()
            hang.wait(10)
        first = False
        return 1.0, 2.0

    sampler = Sampler(
        [Gauge("disk", About("B", "test"), read), energy(lambda: clock.now)],
        clock=clock,
        period=0.01,
    )
    sampler.start()
    assert hung.wait(5)
    clock.sleep(1)
    began = time.monotonic()
    assert sampler.poll().totals["energy"].amount == NANO
    assert time.monotonic() - began < 1
    hang.set()
    sampler.stop()


def test_ten_threads_that_ask_share_out_the_time_without_rest(clock: ManualClock) -> None:
    ticking = iter(range(10**9))
    sampler = Sampler([energy(lambda: next(ticking) * 10)], clock=clock)
    cursor, parts = Cursor(sampler), []

    def ask() -> None:
        for _ in range(200):
            clock.sleep(0.001)
            parts.append(cursor.advance().billionths("energy"))  # None where the time stood

    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    clock.sleep(1)
    parts.append(cursor.advance().billionths("energy"))
    assert sum(part or 0 for part in parts) == 2001 * 10  # each reading is in one interval


def test_a_gap_is_bridged_by_the_next_reading_of_a_power(clock: ManualClock) -> None:
    broken = False

    def read() -> float:
        if broken:
            raise SamplerReadError("not now")
        return 100.0

    sampler = Sampler([Accumulated("energy", JOULES, [Integral(read)])], clock=clock)
    cursor = Cursor(sampler)
    broken = True
    clock.sleep(1)
    sampler.tick()
    broken = False
    clock.sleep(1)
    assert cursor.advance().amount("energy") == 200.0
