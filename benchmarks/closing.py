"""How long the end of a run takes, the loading of the libraries that it needs included."""

from __future__ import annotations

from benchmarks.losses import losses
from benchmarks.measuring import Times, in_fresh_process, over, timed
from benchmarks.rows import Row

__all__ = ["measure"]

NEARLY_EMPTY = 1_000


def measure(*, quick: bool) -> list[Row]:
    """Return the time that ``end_run`` takes [s], each in a fresh process, in turn."""
    rounds, scale = (1, 100) if quick else (3, 1)
    million, many = 1_000_000 // scale, 10_000 // scale
    cases = {
        "nothing": {"points": NEARLY_EMPTY},
        "million": {"points": million},
        "fourfold": {"points": 4 * million},
        "names": {"metrics": many},
        "parameters": {"parameters": many},
    }
    found: dict[str, list[Times]] = {case: [] for case in cases}
    for _ in range(rounds):
        for case, sizes in cases.items():
            found[case].append(Times(*in_fresh_process(close, **sizes)))
    whats = {
        "million": (f"{million} points", 1.0),
        "names": (f"{many} metric names", 2.0),
        "parameters": (f"{many} parameters", 2.0),
    }
    rows = [
        Row(
            what=f"end_run, {what}, {clock}",
            measured=(measured := [getattr(each, clock) for each in found[case]]),
            unit="s",
            budget=budget,
            against=f"end_run, {NEARLY_EMPTY} points",
            ratios=over(measured, [getattr(each, clock) for each in found["nothing"]]),
        )
        for case, (what, budget) in whats.items()
        for clock in Times._fields
    ]
    return [*rows, _growth(found, million)]


def _growth(found: dict[str, list[Times]], million: int) -> Row:
    """Compare four times the points with the points, without what an empty run takes."""
    empty, once, fourfold = (
        [each.cpu for each in found[case]] for case in ("nothing", "million", "fourfold")
    )
    extra = [time - base for time, base in zip(fourfold, empty, strict=True)]
    return Row(
        what=f"end_run, {4 * million} points, cpu beyond {NEARLY_EMPTY} points",
        measured=extra,
        unit="s",
        against=f"the same, {million} points (linear is 4)",
        ratios=over(extra, [time - base for time, base in zip(once, empty, strict=True)]),
        ratio_budget=4.4,
    )


def close(points: int = 0, metrics: int = 0, parameters: int = 0) -> Times:
    """Fill a run and return how long its end takes [s]."""
    import prov4ml

    prov4ml.start_run("bench")
    for name, value, step, _ in losses(points):
        prov4ml.log_metric(name, value, "Training", step)
    for number in range(metrics):
        prov4ml.log_metric(f"layers/{number}/norm", number / 7, "Training", 1)
    for number in range(parameters):
        prov4ml.log_param(f"layers/{number}/width", number / 7)
    return timed(prov4ml.end_run)
