"""Tensors as values: read at once, and let go."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pytest
import torch

from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.settings import RunSettings
from provml_lightning.errors import RecordError
from provml_lightning.runtime.opening import open_run
from provml_lightning.runtime.run import Run
from provml_lightning.storage.series import read_series

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> Run:
    opened = open_run(RunSettings(experiment_name="tensors", provenance_save_dir=tmp_path))
    assert isinstance(opened, Run)
    return opened


def test_tensors_of_one_element_are_values_and_their_graph_is_let_go(run: Run) -> None:
    weight = torch.tensor([2.0], requires_grad=True)
    product = weight * 3
    alive = weakref.ref(product)
    steps = (torch.tensor(0), torch.tensor([1]), 2, 3, 4, 5)
    half, own = torch.tensor(0.5, dtype=torch.bfloat16), torch.nn.Parameter(torch.tensor(8.0))
    values = (product, product.sum(), torch.tensor([[7]]), torch.tensor(True), half, own)
    for step, value in zip(steps, values, strict=True):
        run.record_metric("m", value, None, step)
    del product, values, value
    gc.collect()
    assert alive() is None
    table = read_series(run.layout, MetricKey("m", None, None))
    assert table["value"].to_pylist() == [6.0, 6.0, 7.0, 1.0, 0.5, 8.0]
    assert table["step"].to_pylist() == [0, 1, 2, 3, 4, 5]
    run.close()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (torch.zeros(2), r"torch.Tensor of shape \(2,\)"),
        (torch.zeros(0), r"torch.Tensor of shape \(0,\)"),
        (torch.zeros((), device="meta"), "torch.Tensor"),
        (torch.tensor(1j), "torch.Tensor"),
        (torch.nn.Linear(1, 1), "torch.nn.modules.linear.Linear"),
    ],
)
def test_what_is_not_one_number_is_refused_and_the_run_goes_on(
    value: object, kind: str, run: Run
) -> None:
    with pytest.raises(RecordError, match=f"metric 'm': a {kind}.* is not one number"):
        run.record_metric("m", value)
    run.record_metric("m", 1.0)
    run.close()
    assert read_series(run.layout, MetricKey("m", None, None)).num_rows == 1
