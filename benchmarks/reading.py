"""How long it takes to read one metric of a run that has ended."""

from __future__ import annotations

from pathlib import Path

from benchmarks.losses import NAMES, losses
from benchmarks.measuring import Times, in_fresh_process, interleave, over, timed
from benchmarks.rows import Row

__all__ = ["measure"]

BUDGET = 50.0  # [ms]
GET = "get_metric"
CSV = "pandas.read_csv of the same values"


def measure(*, quick: bool) -> list[Row]:
    """Return the time to read a metric [ms] that shares its file with nine others."""
    points, rounds = (10_000, 2) if quick else (1_000_000, 9)
    found = {
        name: [Times(*each) for each in times]
        for name, times in in_fresh_process(contend, points=points, rounds=rounds).items()
    }
    rows = []
    for clock in Times._fields:
        ours, text = ([getattr(each, clock) * 1e3 for each in found[name]] for name in (GET, CSV))
        rows.append(
            Row(
                what=f"get_metric, {points} points of a metric among {len(NAMES)}, {clock}",
                measured=ours,
                unit="ms",
                budget=BUDGET,
                against=CSV,
                ratios=over(ours, text),
            )
        )
    return rows


def contend(points: int, rounds: int) -> dict[str, list[Times]]:
    """Log a long metric and nine short ones, then read the long one in turn in both forms."""
    import pandas as pd

    import prov4ml

    text = Path("one.csv")
    with prov4ml.start_run("bench"), text.open("w") as file:
        file.write("step,timestamp,value\n")
        for index, (name, value, step, now) in enumerate(losses(points)):
            if index % 10 == 0:
                prov4ml.log_metric(name, value, "Training", step, timestamp=now)
            prov4ml.log_metric("long", value, "Training", index, timestamp=now)
            file.write(f"{index},{now},{value}\n")
    return interleave(
        {
            GET: lambda: timed(lambda: prov4ml.get_metric("prov/bench_0", "long")),
            CSV: lambda: timed(lambda: pd.read_csv(text)),
        },
        rounds,
    )
