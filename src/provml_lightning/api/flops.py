"""Count what a model computes and keep it as a metric of the current run."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.scalars import to_step
from provml_lightning.errors import SamplerReadError
from provml_lightning.runtime.active import current, deliver
from provml_lightning.runtime.counting import excuse_count, note_remarks
from provml_lightning.samplers.flops import count_batch, count_epoch

if TYPE_CHECKING:
    from collections.abc import Callable

    from provml_lightning.runtime.active import AnyRun
    from provml_lightning.samplers.flops import Count

__all__ = ["log_flops_per_batch", "log_flops_per_epoch"]


def log_flops_per_batch(
    label: str,
    model: Any,
    batch: Any,
    context: str | None = None,
    step: int | None = None,
    *,
    engine: str = "auto",
) -> None:
    """Keep the floating-point operations of a model's forward pass on one batch [FLOP].

    The model, its random numbers and gradients stay as they are. Batches of the same shapes are
    counted once. Where the forward pass fails there is one warning, and no value.

    Args:
        label: The metric's name, any text.
        model: A ``torch.nn.Module``, such as a LightningModule.
        batch: What a loader yields: of ``(x, y)`` the first goes into ``forward(x)``, of a mapping
            the members that ``forward`` knows by name.
        context: What it belongs to; None for the run itself.
        step: Whole number, or None [1].
        engine: ``"meta"`` counts a copy without weights, ``"real"`` one real forward pass,
            ``"auto"`` the one and, where that fails, the other; ``"thop"`` gives what thop counts,
            in MACs [MAC]. The metric's source says which it was.

    Raises:
        ConfigurationError: There is no such engine.
        RecordError: The step is not a whole number.
        SamplerUnavailableError: The model is no module of torch, or thop is not installed.
    """
    _keep(label, context, step, lambda: count_batch(model, batch, engine))


def log_flops_per_epoch(
    label: str,
    model: Any,
    dataset: Any,
    context: str | None = None,
    step: int | None = None,
    *,
    engine: str = "auto",
) -> None:
    """Keep the floating-point operations of a model's forward passes over a data set [FLOP].

    The sum over all batches, the last short one too. Where the shapes of all batches cannot be
    known without reading everything, up to 64 are looked at and the source says ``sampled``. The
    loader, its workers and all random numbers stay as they are.

    Args:
        label: The metric's name, any text.
        model: A ``torch.nn.Module``, such as a LightningModule.
        dataset: A DataLoader; a Dataset or Subset, whose samples are counted one by one; or a list
            of batches.
        context: What it belongs to; None for the run itself.
        step: Whole number, or None [1].
        engine: As of :func:`log_flops_per_batch`.

    Raises:
        ConfigurationError: There is no such engine.
        RecordError: The step is not a whole number.
        SamplerUnavailableError: The model is no module of torch, the data set has no batches, or
            thop is not installed.
    """
    _keep(label, context, step, lambda: count_epoch(model, dataset, engine))


def _keep(label: str, context: str | None, step: int | None, count: Callable[[], Count]) -> None:
    number = to_step(label, step)
    run = current()
    if run is not None and not run.records:
        return
    now = time.time_ns()
    try:
        found = count()
    except SamplerReadError as error:
        deliver(partial(excuse_count, label=label, error=error))
        return

    def tell(run: AnyRun) -> None:
        amount, unit = float(found.amount), found.unit
        run.record_metric(label, amount, context, number, found.source, time=now, unit=unit)
        note_remarks(run, label, found)

    deliver(tell)
