"""A clock that goes on when it is told to."""

from __future__ import annotations

__all__ = ["ManualClock"]


class ManualClock:
    """Returns nanoseconds; begins at one hour."""

    def __init__(self) -> None:
        self.now = 3_600_000_000_000

    def __call__(self) -> int:
        return self.now

    @property
    def seconds(self) -> float:
        """Time since the beginning [s]."""
        return (self.now - 3_600_000_000_000) / 1e9

    def sleep(self, seconds: float) -> None:
        """Go on."""
        self.now += round(seconds * 1e9)
