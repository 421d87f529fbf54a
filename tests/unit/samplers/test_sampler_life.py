from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING

import pytest

from provml_lightning.samplers.base import About, Accumulated, Channel, Counter
from provml_lightning.samplers.sampler import Sampler

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fakes.clock import ManualClock

JOULES = About("J", "test")


def energy(read: Callable[[], int]) -> Channel:
    return Accumulated("energy", JOULES, [Counter(read, 1)])


def growing(clock: ManualClock, watts: int = 100) -> Callable[[], int]:
    return lambda: watts * clock.now  # nanojoules


def test_the_thread_reads_by_itself_and_is_gone_after_the_stop() -> None:
    before = threading.active_count()
    count = 0

    def read() -> int:
        nonlocal count
        count += 1
        return count

    sampler = Sampler([energy(read)], period=0.01)
    sampler.start()
    sampler.start()
    assert threading.active_count() == before + 1
    deadline = time.monotonic() + 5
    while count < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    sampler.stop()
    sampler.stop()
    assert count >= 5
    assert threading.active_count() == before


def test_it_is_closed_once(clock: ManualClock) -> None:
    closed = []
    sampler = Sampler(clock=clock, close=[lambda: closed.append(1)])
    sampler.stop()
    sampler.stop()
    sampler.start()  # and does not start again
    assert closed == [1]


def test_nothing_is_read_after_the_stop(clock: ManualClock) -> None:
    asked = 0

    def read() -> int:
        nonlocal asked
        asked += 1
        return asked

    sampler = Sampler([energy(read)], clock=clock)
    sampler.stop()
    before = asked
    assert sampler.poll().totals == {}
    assert asked == before


def test_a_pickled_sampler_comes_back_without_thread_and_sensors(clock: ManualClock) -> None:
    sampler = Sampler([energy(growing(clock))], clock=clock)
    sampler.start()
    try:
        back = pickle.loads(pickle.dumps(sampler))  # noqa: S301  our own
    finally:
        sampler.stop()
    assert back.poll().totals == {}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_has_neither_thread_nor_sensors(clock: ManualClock) -> None:
    sampler = Sampler([energy(growing(clock))], clock=clock, period=0.01)
    sampler.start()
    child = os.fork()
    if child == 0:
        alive = any(thread.name == "provml-sampler" for thread in threading.enumerate())
        os._exit(1 if alive or sampler.poll().totals else 0)
    _, status = os.waitpid(child, 0)
    sampler.stop()
    assert os.waitstatus_to_exitcode(status) == 0


def test_signal_handlers_are_nobody_s_but_the_user_s(clock: ManualClock) -> None:
    # codecarbon #1310: both were taken over, and not given back.
    numbers = [signal.SIGINT, signal.SIGTERM]
    before = [signal.getsignal(number) for number in numbers]
    sampler = Sampler([energy(growing(clock))], clock=clock)
    sampler.start()
    during = [signal.getsignal(number) for number in numbers]
    sampler.stop()
    assert during == [signal.getsignal(number) for number in numbers] == before


def test_a_program_that_forgets_to_stop_it_ends_at_once() -> None:
    program = """
import time
from provml_lightning.samplers.base import About, Gauge
from provml_lightning.samplers.sampler import Sampler
first = True
def read():
    global first
    if not first: time.sleep(60)
    first = False
    return 1.0, None
Sampler([Gauge("disk", About("B", "test"), read)], period=0.01).start()
time.sleep(0.1)
print(time.time())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    assert time.time() - float(done.stdout) < 2
    assert done.stderr == ""


def test_it_is_not_kept_alive_by_the_list_of_those_that_a_fork_resets(clock: ManualClock) -> None:
    from provml_lightning.samplers import sampler as module

    sampler = Sampler(clock=clock)
    assert sampler in module._LIVING  # noqa: SLF001
    gone = weakref.ref(sampler)
    del sampler
    gc.collect()
    assert gone() is None
