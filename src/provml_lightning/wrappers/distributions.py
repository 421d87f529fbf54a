"""How the values of a tensor are distributed, computed where the tensor lies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.parameter import is_lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import nn

__all__ = ["COMPILED", "STATISTICS", "distribution", "weights_of"]

COMPILED = "_orig_mod."
STATISTICS = ("mean", "std", "min", "max", "p25", "p50", "p75")
_QUANTILES = (0.25, 0.5, 0.75)
_SLICE = 1 << 22  # elements


def weights_of(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Return the weights by the name of their layer: every floating parameter that is no bias.

    One that is called ``weight`` has the layer's name alone; others theirs behind it. Tied
    weights come once; empty ones and those without values do not come.
    """
    for full, parameter in model.named_parameters():
        name = full.removeprefix(COMPILED)
        layer, _, own = name.rpartition(".")
        if not own.startswith("bias") and _has_values(parameter):
            yield (layer or "root") if own == "weight" else name, parameter.detach()


@torch.no_grad()
def distribution(weights: torch.Tensor) -> dict[str, float]:
    """Return mean, population standard deviation, extremes and quartiles of all elements.

    Sums are of float64; quartiles interpolate linearly between neighbours, as NumPy's do. One
    NaN makes everything NaN. One transfer from the device.

    Source:
        Two passes: the mean, then the squares of the differences from it (Chan, Golub, LeVeque
        1983).
    """
    flat = weights.reshape(-1)
    if weights.device.type == "mps":  # it has no float64
        flat = flat.cpu()
    if flat.element_size() < 4:  # noqa: PLR2004  bytes; not every device sorts halves
        flat = flat.float()
    count = flat.numel()
    mean = _sum(flat, lambda part: part) / count
    variance = _sum(flat, lambda part: (part - mean).square()) / count
    ordered = flat.sort().values
    places = [quantile * (count - 1) for quantile in _QUANTILES]
    wanted = [0, count - 1, *(n for place in places for n in (math.floor(place), math.ceil(place)))]
    found = ordered[torch.tensor(wanted, device=flat.device)].double()
    told = torch.cat([mean.reshape(1), variance.sqrt().reshape(1), found]).tolist()
    if math.isnan(told[3]):  # a sort puts NaN last
        return dict.fromkeys(STATISTICS, math.nan)
    below, above = told[4::2], told[5::2]
    quartiles = map(_between, below, above, (place % 1 for place in places))
    return dict(zip(STATISTICS, [*told[:4], *quartiles], strict=True))


def _has_values(parameter: nn.Parameter) -> bool:
    given: Any = parameter
    if is_lazy(given) or given.is_meta or not given.is_floating_point():
        return False
    return parameter.numel() > 0


def _sum(flat: torch.Tensor, of: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    total = torch.zeros((), dtype=torch.float64, device=flat.device)
    for part in flat.split(_SLICE):  # type: ignore[no-untyped-call]
        total += of(part.double()).sum()
    return total


def _between(below: float, above: float, weight: float) -> float:
    return below if below == above else below + (above - below) * weight
