"""A training whose energy is scripted: so many joules a batch, and many where no stage is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import prov4ml
from provml_lightning.errors import AmbiguousMetricError, RecordNotFoundError
from provml_lightning.samplers.base import About, Accumulated, Counter, Opened
from tests.training import Digits

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

__all__ = ["BETWEEN", "Machine", "Spending", "energy", "has", "run_of", "where"]

BETWEEN = 1000


class Machine:
    """Uses as much energy as it is told to, in whole joules."""

    def __init__(self) -> None:
        self.spent = 0
        self.closed = 0

    def use(self, joules: int) -> None:
        self.spent += joules

    def open(self, *_: Any) -> Opened:
        def close() -> None:
            self.closed += 1

        meter = Counter(lambda: self.spent, 10**9)
        return Opened([Accumulated("cpu.energy", About("J", "rapl"), [meter])], close=[close])


class Spending(Digits):
    """Uses 5 J a batch of training, 3 J of validation, 2 J of test, 1 J of prediction.

    And a thousand wherever no stage is at work.
    """

    use: Callable[[int], None]

    def training_step(self, batch: Any) -> torch.Tensor:
        self.use(5)
        loss = self.loss(batch)
        self.log("loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch: Any) -> None:
        self.use(3)
        self.log("val_loss", self.loss(batch), on_step=True, on_epoch=True)

    def test_step(self, batch: Any) -> None:
        self.use(2)
        super().test_step(batch)

    def predict_step(self, batch: Any) -> torch.Tensor:
        self.use(1)
        return super().predict_step(batch)

    # A callback's hooks come before the module's.

    def on_fit_start(self) -> None:
        self.use(BETWEEN)

    on_validation_start = on_validation_epoch_end = on_train_end = on_fit_end = on_fit_start
    on_test_start = on_test_epoch_end = on_predict_start = on_predict_epoch_end = on_fit_start


def run_of(logger: Any) -> Path:
    return Path(logger.log_dir)


def energy(logger: Any, context: str | None = None) -> list[float]:
    return list(prov4ml.get_metric(run_of(logger), "cpu_energy", context)["value"])


def where(logger: Any, name: str, context: str | None = None) -> list[tuple[int, int]]:
    frame = prov4ml.get_metric(run_of(logger), name, context)
    return list(zip(frame["step"], frame["epoch"], strict=True))


def has(logger: Any, name: str, context: str | None = None) -> bool:
    try:
        prov4ml.get_metric(run_of(logger), name, context)
    except RecordNotFoundError:
        return False
    except AmbiguousMetricError:
        return True
    return True
