"""The sampler: one thread that keeps channels up to date, and snapshots of them for everybody."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from provml_lightning.errors import SamplerUnavailableError
from provml_lightning.samplers.base import NANO

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from provml_lightning.samplers.base import About, Channel, Level, Total

__all__ = ["PERIOD", "WINDOW", "Sampler", "Snapshot"]

PERIOD = 0.5  # [s]
WINDOW = NANO  # the shortest interval whose own mean is a rate, not that of the last second [ns]

_PATIENCE = 2 * NANO
_LONGEST_STOP = 1.0

Dropped = Callable[[str, str, BaseException], object]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that was known at one time; what could not be read then is not in it.

    Attributes:
        time: On the sampler's clock [ns].
        totals: What each channel had accumulated.
        levels: What each channel stood at.
        about: Unit and source of each channel.
    """

    time: int
    totals: Mapping[str, Total]
    levels: Mapping[str, Level]
    about: Mapping[str, About]


class Sampler:
    """Reads channels in the background, and at once for whoever asks.

    Every method may be called from any thread. In a process born by fork it has no channels; a
    pickled one comes back without channels and thread.

    Attributes:
        began: What was known at the beginning.
        lock: Held while a snapshot is taken; a process born by fork gets another.

    Args:
        channels: What to read.
        period: Time between two readings of the thread [s].
        clock: Returns the time [ns]; it never goes back.
        on_drop: Told once of a channel that is not read any more: its name, its source, why.
        close: Called at the stop.
    """

    def __init__(
        self,
        channels: Iterable[Channel] = (),
        *,
        period: float = PERIOD,
        clock: Callable[[], int] = time.monotonic_ns,
        on_drop: Dropped | None = None,
        close: Sequence[Callable[[], object]] = (),
    ) -> None:
        self.period = period
        self._channels = tuple(channels)
        self._clock = clock
        self._on_drop = on_drop
        self._close = list(close)
        self._about = MappingProxyType({each.name: each.about for each in self._channels})
        # Long enough for a snapshot that is older than the window.
        self._history: deque[Snapshot] = deque(maxlen=int(WINDOW / NANO / period) + 3)
        self.lock = threading.RLock()
        self._background = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        _LIVING.add(self)
        self.began = self.tick()

    def start(self) -> None:
        """Start the thread; a second call does nothing."""
        if self._thread is None and not self._stop.is_set():
            # A thread that a hung disk holds must not hold the interpreter's exit.
            self._thread = threading.Thread(target=self._run, name="provml-sampler", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread and let go of the sources; a second call does nothing."""
        self._stop.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(_LONGEST_STOP)
        with self.lock:  # what was closed is not to be read: its file's number may be another's
            self._channels = ()
        while self._close:
            self._close.pop()()

    def tick(self) -> Snapshot:
        """Read everything, what may be slow too; what the thread does every period."""
        with self._background:  # not the lock of poll, which must never wait for a disk
            now = self._clock()
            for channel in self._channels:
                if channel.background:
                    self._advance(channel, now)
        snapshot = self.poll()
        self._history.append(snapshot)
        return snapshot

    def poll(self) -> Snapshot:
        """Read what is quick to be read, and return what is known now."""
        with self.lock:
            now = self._clock()
            totals: dict[str, Total] = {}
            levels: dict[str, Level] = {}
            for channel in self._channels:
                if not channel.background:
                    self._advance(channel, now)
                if channel.failing_since is not None:
                    continue
                if channel.total is not None:
                    totals[channel.name] = channel.total
                elif channel.level is not None:
                    levels[channel.name] = channel.level
        return Snapshot(now, MappingProxyType(totals), MappingProxyType(levels), self._about)

    def before(self, moment: int) -> Snapshot:
        """Return the last snapshot of the thread up to a time [ns], or the first that is kept."""
        kept = tuple(self._history)
        older = [snapshot for snapshot in kept if snapshot.time <= moment]
        return older[-1] if older else kept[0]

    def abandon(self) -> None:
        """In a process born by fork: the thread is not here, and the sensors are the parent's."""
        self._channels, self._close, self._thread = (), [], None
        self.lock, self._background = threading.RLock(), threading.Lock()
        self._stop = threading.Event()
        self._stop.set()

    def _run(self) -> None:
        due = time.monotonic()
        while True:
            now = time.monotonic()
            # What was missed, while the machine slept, is not made up for.
            due = max(due + self.period, now)
            if self._stop.wait(due - now):
                return
            self.tick()

    def _advance(self, channel: Channel, now: int) -> None:
        try:
            channel.advance(now)
        except SamplerUnavailableError as error:
            self._drop(channel, error)
        except Exception as error:  # noqa: BLE001  a driver may raise anything; training goes on
            since = channel.failing_since
            channel.failing_since = now if since is None else since
            if now - channel.failing_since >= _PATIENCE:
                self._drop(channel, error)
        else:
            channel.failing_since = None

    def _drop(self, channel: Channel, error: BaseException) -> None:
        if channel.failing_since is None:
            channel.failing_since = self._clock()  # for those that depend on it
        with self.lock:
            self._channels = tuple(each for each in self._channels if each is not channel)
        if self._on_drop is not None:
            self._on_drop(channel.name, channel.about.source, error)

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return Sampler, ()


_LIVING: weakref.WeakSet[Sampler] = weakref.WeakSet()


def _abandon_all() -> None:
    for sampler in tuple(_LIVING):
        sampler.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
