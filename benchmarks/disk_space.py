"""Bytes a point after the run has ended, all files of the run."""

from __future__ import annotations

from pathlib import Path

from benchmarks.losses import NAMES, losses
from benchmarks.measuring import in_fresh_process, over
from benchmarks.rows import Row

__all__ = ["measure"]

BUDGET = 8.5  # [B]


def measure(*, quick: bool) -> list[Row]:
    """Return the bytes a point [B], against one CSV file a metric with the same values."""
    points = 10_000 if quick else 1_000_000
    rows = []
    for single in (True, False):
        run, text = in_fresh_process(weigh, points=points, single=single)
        kind = "float32" if single else "float64"
        rows.append(
            Row(
                what=f"bytes a point, {points} points of {len(NAMES)} noisy {kind} losses",
                measured=[run / points],
                unit="B",
                budget=BUDGET,
                against="CSV text: step,time in ms,value",
                ratios=over([run], [text]),
            )
        )
    return rows


def weigh(points: int, single: bool) -> tuple[int, int]:
    """Return the size of all files of a run, and of the same values as CSV [B]."""
    import prov4ml

    text = 0
    with prov4ml.start_run("bench"):
        for name, value, step, now in losses(points, single=single):
            prov4ml.log_metric(name, value, "Training", step, timestamp=now)
            text += len(f"{step},{now},{value}\n")
    return _size("prov/bench_0"), text


def _size(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
