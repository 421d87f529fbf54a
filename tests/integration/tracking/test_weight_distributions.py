from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn

import prov4ml
from prov4ml import WeightDistributionTrackedModel, get_metric
from tests.integration.tracking.tracked_runs import start

if TYPE_CHECKING:
    from pathlib import Path


def test_weights_are_told_as_seven_metrics_a_layer(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(5, 1), nn.ReLU(), nn.LSTM(1, 1))
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, 2.0, 3.0, 4.0, 10.0]]))
    with start(tmp_path):
        tracked = WeightDistributionTrackedModel("net", net, context="Training")
        for epoch in (0, 1):
            tracked.log_epoch(epoch)
            with torch.no_grad():
                net[0].weight.mul_(2.0)
        tracked.close()

    # Deviations from 4: -3 -2 -1 0 6, squares 9 4 1 0 36, mean 10. Quartiles fall on elements.
    expected = {
        "mean": 4.0,
        "std": math.sqrt(10),
        "min": 1.0,
        "max": 10.0,
        "p25": 2.0,
        "p50": 3.0,
        "p75": 4.0,
    }
    for statistic, value in expected.items():
        table = get_metric(tmp_path / "digits_0", f"net/0/{statistic}", context="Training")
        assert table["value"].tolist() == pytest.approx([value, 2 * value], rel=1e-15)
        assert table["step"].tolist() == table["epoch"].tolist() == [0, 1]
    labels = set(prov4ml.list_metrics(tmp_path / "digits_0")["label"])
    assert "net/2.weight_ih_l0/mean" in labels
    assert not any("bias" in label for label in labels)


def test_sums_of_many_weights_are_exact_to_float64(tmp_path: Path) -> None:
    net = nn.Linear(3000, 2000, bias=False)
    with torch.no_grad():
        net.weight.fill_(0.1)  # as float32 0.100000001490116...
        net.weight[0, 0] = float(2**24)
    with start(tmp_path):
        WeightDistributionTrackedModel("net", net).log_epoch(0)

    tenth, count = float(np.float32(0.1)), 6_000_000
    mean = (2.0**24 + (count - 1) * tenth) / count
    assert get_metric(tmp_path / "digits_0", "net/root/mean")["value"].item() == pytest.approx(
        mean, rel=1e-12
    )


def test_odd_weights_have_honest_numbers(tmp_path: Path) -> None:
    odd = nn.ParameterDict(
        {
            "nan": torch.tensor([1.0, math.nan]),
            "infinite": torch.tensor([1.0, math.inf]),
            "between": torch.tensor([0.0, 1.0], dtype=torch.float16),
            "one": torch.tensor([7.0], dtype=torch.bfloat16),
        }
    )
    odd.register_parameter("nothing", nn.Parameter(torch.empty(0)))
    with start(tmp_path):
        WeightDistributionTrackedModel("odd", nn.Sequential(odd, nn.LazyLinear(2))).log_epoch(0)

    def told(name: str) -> float:
        table = get_metric(tmp_path / "digits_0", f"odd/0.{name}")
        return float(table["value"].item())

    assert math.isnan(told("nan/mean"))
    assert math.isnan(told("nan/min"))
    assert told("infinite/max") == math.inf
    assert told("infinite/min") == 1.0
    assert told("between/p25") == 0.25
    assert told("one/std") == 0.0
    assert not any("nothing" in x for x in prov4ml.list_metrics(tmp_path / "digits_0")["label"])
