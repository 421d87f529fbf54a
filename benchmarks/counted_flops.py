"""The cost of ``log_flops_per_batch``: for a shape that was counted before, and a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measuring import Times, in_fresh_process, interleave, over, timed
from benchmarks.rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["measure"]

RATIO_BUDGET = 0.05  # of a forward pass [1]
LAYERS = 20

AGAIN = "log_flops_per_batch, a shape counted before"
FIRST = "log_flops_per_batch, a new shape"
FORWARD = "forward pass of the model"


def measure(*, quick: bool) -> list[Row]:
    """Return the cost of a call [ms] against a forward pass of the model that is counted."""
    rounds, calls = (2, 2) if quick else (9, 20)
    spent = in_fresh_process(contend, calls=calls, rounds=rounds)
    found = {name: [Times(*each) for each in times] for name, times in spent.items()}
    return [
        Row(
            what=f"{name}, {LAYERS} convolutions, {clock}",
            measured=[each * 1e3 / calls for each in _by(clock, found[name])],
            unit="ms",
            against=FORWARD,
            ratios=over(_by(clock, found[name]), _by(clock, found[FORWARD])),
            ratio_budget=budget,
        )
        for name, budget in ((AGAIN, RATIO_BUDGET), (FIRST, None))
        for clock in Times._fields
    ]


def _by(clock: str, times: list[Times]) -> list[float]:
    return [getattr(each, clock) for each in times]


def contend(calls: int, rounds: int) -> dict[str, list[Times]]:
    """Count a small convolutional network on 4 images of 32×32, in turn with running it."""
    import torch
    from torch import nn

    import prov4ml

    torch.set_num_threads(1)
    layers = [
        layer
        for _ in range(LAYERS)
        for layer in (nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU())
    ]
    model, batch = nn.Sequential(*layers), torch.ones(4, 64, 32, 32)
    sizes = iter(range(33, 10**6))
    prov4ml.start_run("bench")

    def forward() -> None:
        with torch.no_grad():
            model(batch)

    def again() -> None:
        prov4ml.log_flops_per_batch("flops", model, batch, "Training", 1)

    def first() -> None:
        wider = torch.empty(1, 64, 32, next(sizes))
        prov4ml.log_flops_per_batch("flops", model, wider, "Training", 1)

    def contender(action: Callable[[], None]) -> Callable[[], Times]:
        return lambda: timed(lambda: [action() for _ in range(calls)])

    found = interleave(
        {name: contender(action) for name, action in
         ((AGAIN, again), (FIRST, first), (FORWARD, forward))},
        rounds,
    )  # fmt: skip
    prov4ml.end_run()
    return found
