"""Values and times as a training makes them: noisy, falling, with uneven steps."""

from __future__ import annotations

import math
import random
import struct
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NAMES", "losses"]

NAMES = [f"loss_{number}" for number in range(10)]

_SINGLE = struct.Struct("f")


def losses(points: int, *, single: bool = False) -> Iterator[tuple[str, float, int, int]]:
    """Return name, value, step and time [ms] of each point, ten names a step.

    Each curve falls as exp(-t), with 5 % of noise; steps come every 20 ms, give or take 2 ms.

    Args:
        points: How many [1].
        single: Values have the 24 significant bits of a float32, as those of a tensor do.
    """
    chance = random.Random(0)  # noqa: S311  the noise is no secret
    steps = points // len(NAMES)
    now = time.time_ns() // 1_000_000
    for step in range(steps):
        now += round(chance.gauss(20, 2))
        level = 0.1 + math.exp(-3 * step / steps)
        for name in NAMES:
            value = level * chance.gauss(1, 0.05)
            yield name, _SINGLE.unpack(_SINGLE.pack(value))[0] if single else value, step, now
