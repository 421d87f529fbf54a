"""What a sampler reads: channels, which accumulate an amount or tell a level.

Amounts are whole numbers of billionths of their unit (nanojoules for J), so that the amounts of
any intervals add up to the amount of all of them exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "NANO",
    "About",
    "Accumulated",
    "Channel",
    "Constant",
    "Counter",
    "Gauge",
    "Integral",
    "Level",
    "Meter",
    "Opened",
    "Total",
]

NANO = 1_000_000_000


class Total(NamedTuple):
    """What a channel has accumulated since it was first read.

    Attributes:
        time: When it was read, on the sampler's clock [ns].
        amount: Billionths of the channel's unit.
    """

    time: int
    amount: int


class Level(NamedTuple):
    """What a channel stands at, and out of how much, in the channel's unit."""

    time: int
    value: float
    capacity: float | None = None


class About(NamedTuple):
    """What is true of all readings of a channel.

    Attributes:
        unit: Unit of amounts and levels.
        source: Where they come from.
        resolution: The shortest time over which a rate means something [ns].
    """

    unit: str
    source: str
    resolution: int = 0


class Channel(ABC):
    """One quantity from one source.

    Attributes:
        name: What it is, such as ``"cpu.energy"``.
        about: Unit, source and resolution.
        background: It is read by the sampler's thread alone, for it may be slow or hang.
        total: What has accumulated; None for levels.
        level: What it stands at; None for amounts.
    """

    def __init__(self, name: str, about: About, *, background: bool = False) -> None:
        self.name = name
        self.about = about
        self.background = background
        self.total: Total | None = None
        self.level: Level | None = None
        self.failing_since: int | None = None

    @abstractmethod
    def advance(self, now: int) -> None:
        """Read the source and bring ``total`` or ``level`` up to a time [ns].

        Raises:
            SamplerReadError: There was nothing to be read this time; what was missed is caught up.
            SamplerUnavailableError: There never will be again.
        """


class Meter(Protocol):
    """Something that knows what has accumulated since it was first asked."""

    def total(self, now: int) -> int:
        """Return the amount up to a time [ns], in billionths of the unit."""


class Counter:
    """A hardware counter that grows, and wraps or restarts.

    Args:
        read: Returns the counter's value.
        scale: Billionths of the unit that one count is.
        modulus: Where the counter wraps. None: it never does, so that a smaller value means that
            it was reset; what was counted before the reset is lost, and nothing is made up.
    """

    def __init__(self, read: Callable[[], int], scale: float, modulus: int | None = None) -> None:
        self._read = read
        self._scale = scale
        self._modulus = modulus
        self._last: int | None = None
        self._counted = 0

    def total(self, now: int) -> int:  # noqa: ARG002  a counter counts by itself
        """Return what was counted, in billionths of the unit."""
        value = self._read()
        if self._last is not None:
            grown = value - self._last
            self._counted += grown % self._modulus if self._modulus else max(grown, 0)
        self._last = value
        return round(self._counted * self._scale)


class Integral:
    """The integral of a rate over time, by the trapezoid rule.

    Args:
        read: Returns the rate now, in the unit a second.
    """

    def __init__(self, read: Callable[[], float]) -> None:
        self._read = read
        self._last: tuple[int, float] | None = None
        self._amount = 0

    def total(self, now: int) -> int:
        """Return the integral, in billionths of the unit."""
        rate = self._read()
        if self._last is not None:
            time, before = self._last
            self._amount += round((before + rate) / 2 * (now - time))
        self._last = (now, rate)
        return self._amount


class Constant:
    """A rate that is assumed to be always the same, in the unit a second."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._began: int | None = None

    def total(self, now: int) -> int:
        """Return the amount, in billionths of the unit."""
        if self._began is None:
            self._began = now
        return round(self._rate * (now - self._began))


class Accumulated(Channel):
    """The sum of several meters; it is whole or absent.

    Args:
        name: What it is.
        about: Unit, source and resolution.
        meters: What is summed.
        background: It is read by the sampler's thread alone.
        pace: The least time between two readings, for what is dear [ns].
    """

    def __init__(
        self,
        name: str,
        about: About,
        meters: Sequence[Meter],
        *,
        background: bool = False,
        pace: int = 0,
    ) -> None:
        super().__init__(name, about, background=background)
        self._meters = meters
        self._pace = pace

    @override
    def advance(self, now: int) -> None:
        if self.total is None or now - self.total.time >= self._pace:
            self.total = Total(now, sum(meter.total(now) for meter in self._meters))


class Gauge(Channel):
    """A level, with its capacity where there is one; always read in the background."""

    def __init__(
        self, name: str, about: About, read: Callable[[], tuple[float, float | None]]
    ) -> None:
        super().__init__(name, about, background=True)
        self._read = read

    @override
    def advance(self, now: int) -> None:
        self.level = Level(now, *self._read())


@dataclass(frozen=True, slots=True)
class Opened:
    """What was found when a source was opened.

    Attributes:
        channels: What can be read, in the order in which it is to be.
        remarks: What the reader must know: what is missing and why, what was assumed.
        close: Lets go of the source.
        hardware: What is measured, by name: ``cpu``, ``gpu``, ``ram``.
    """

    channels: Sequence[Channel] = ()
    remarks: Sequence[str] = ()
    close: Sequence[Callable[[], object]] = field(default=())
    hardware: Mapping[str, str] = field(default_factory=dict)
