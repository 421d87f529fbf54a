"""Contenders that work in turn, a few steps each, so that a busy machine is busy for all."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

from benchmarks.measuring import Times, now, since

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["BESIDE", "LOOP", "Turns", "Worker", "compete"]

LOOP, BESIDE = "loop", "beside"


class Turns:
    """Whose turn it is, of threads that work one at a time."""

    def __init__(self, names: Iterable[str]) -> None:
        self._queue = deque(names)
        self._moved = threading.Condition()

    def take(self, name: str) -> None:
        """Wait for one's turn."""
        with self._moved:
            self._moved.wait_for(lambda: self._queue[0] == name)

    def hand_on(self, name: str, *, for_good: bool = False) -> None:
        """Let the next one work; come again after all others, or not."""
        with self._moved:
            self._queue.remove(name)
            if not for_good:
                self._queue.append(name)
            self._moved.notify_all()


class Worker:
    """One contender, and the time of its turns: in the loop and beside it."""

    def __init__(self, name: str, turns: Turns | None = None) -> None:
        self._name = name
        self._turns = turns or Turns([name])
        self._spent = {LOOP: Times(0.0, 0.0), BESIDE: Times(0.0, 0.0)}
        self._part = BESIDE
        self._began = now()

    @property
    def is_in_loop(self) -> bool:
        """Whether the loop is what goes on now."""
        return self._part == LOOP

    @property
    def loop(self) -> Times:
        """The time in the loop [s]."""
        return self._spent[LOOP]

    @property
    def whole(self) -> Times:
        """The time in all [s]."""
        return Times(*map(sum, zip(self._spent[LOOP], self._spent[BESIDE], strict=True)))

    def __enter__(self) -> Self:
        self._turns.take(self._name)
        self._began = now()
        return self

    def __exit__(self, *_: object) -> None:
        self._count()
        self._turns.hand_on(self._name, for_good=True)

    def start(self) -> None:
        """Begin to count: what was prepared until now does not."""
        self._began = now()

    def turn_to(self, part: str) -> None:
        """Go on with the loop, or with what is beside it."""
        self._count()
        self._part = part
        self._began = now()

    def hand_on(self) -> None:
        """Let the others work."""
        self._count()
        self._turns.hand_on(self._name)
        self._turns.take(self._name)
        self._began = now()

    def _count(self) -> None:
        spent = zip(self._spent[self._part], since(self._began), strict=True)
        self._spent[self._part] = Times(*map(sum, spent))


def compete(
    contenders: Mapping[str, Callable[[Worker], object]], rounds: int
) -> dict[str, list[Worker]]:
    """Let contenders work beside each other, in threads, after one round that does not count."""
    names = list(contenders)
    found: dict[str, list[Worker]] = {name: [] for name in names}
    for turn in range(-1, rounds):
        first = turn % len(names)
        order = names[first:] + names[:first]
        turns = Turns(order)
        workers = {name: Worker(name, turns) for name in order}
        with ThreadPoolExecutor(len(names)) as threads:
            for done in [threads.submit(contenders[name], workers[name]) for name in order]:
                done.result()
        if turn >= 0:
            for name, worker in workers.items():
                found[name].append(worker)
    return found
