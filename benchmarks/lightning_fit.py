"""What the logger costs a Lightning fit that logs five metrics every step."""

from __future__ import annotations

import gc
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.measuring import Times, in_fresh_process, over
from benchmarks.rows import Row
from benchmarks.turns import BESIDE, LOOP, compete

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.turns import Worker

__all__ = ["IDLE", "NONE", "OURS", "column", "fit", "loggers", "measure"]

OURS = "ProvMLLogger"
NONE = "logger=False"
IDLE = "a logger that does nothing"
CSV = "CSVLogger"
TENSORBOARD = "TensorBoardLogger"

STEPS_OF_A_TURN = 50  # whoever comes to its turn finds the caches full of the others
RATIO_BUDGETS = {NONE: 1.02, IDLE: None, CSV: 1.0, TENSORBOARD: 1.0}


def measure(*, quick: bool) -> list[Row]:
    """Return the time of a fit [s], its loop alone and whole, against other loggers.

    Without a logger Lightning leaves out work of its own: it gathers no metrics for one. The
    logger that does nothing has that work, so the ratio to it is what the logger itself costs.
    """
    rounds, steps = (1, 20) if quick else (10, 1000)
    found = in_fresh_process(contend, rounds=rounds, steps=steps)
    return [*_ratios(found, steps), *_beside(found)]


def _ratios(found: dict[str, Any], steps: int) -> list[Row]:
    return [
        Row(
            what=f"{OURS}, {steps} steps, {part}, {clock}",
            measured=(measured := column(found[part][OURS], clock)),
            unit="s",
            against=against,
            ratios=over(measured, column(found[part][against], clock)),
            ratio_budget=most,
        )
        for part in ("loop", "whole fit")
        for clock in Times._fields
        for against, most in RATIO_BUDGETS.items()
    ]


def _beside(found: dict[str, Any]) -> list[Row]:
    """Return what a fit takes beside its loop, which does not grow with the training [s]."""

    def beside(contender: str, clock: str) -> list[float]:
        times = (column(found[part][contender], clock) for part in ("whole fit", "loop"))
        return [whole - loop for whole, loop in zip(*times, strict=True)]

    return [
        Row(
            what=f"{OURS}, a fit beside its loop, {clock}",
            measured=(measured := beside(OURS, clock)),
            unit="s",
            against=against,
            ratios=over(measured, beside(against, clock)),
        )
        for clock in Times._fields
        for against in RATIO_BUDGETS
    ]


def column(times: list[list[float]], clock: str) -> list[float]:
    """Return the times of one clock [s]."""
    return [getattr(Times(*each), clock) for each in times]


def contend(rounds: int, steps: int) -> dict[str, dict[str, list[Times]]]:
    """Fit with every logger, fifty steps in turn; return the times of the loop and of the whole."""
    found = compete({name: partial(fit, build, steps) for name, build in loggers().items()}, rounds)
    return {
        "loop": {name: [one.loop for one in workers] for name, workers in found.items()},
        "whole fit": {name: [one.whole for one in workers] for name, workers in found.items()},
    }


def loggers() -> dict[str, Callable[[], Any]]:
    """Return what makes each logger, by its name."""
    from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
    from lightning.pytorch.loggers.logger import DummyLogger

    from provml_lightning import ProvMLLogger

    return {
        OURS: lambda: ProvMLLogger(save_dir="ours"),
        NONE: lambda: False,
        IDLE: DummyLogger,
        CSV: lambda: CSVLogger("csv"),
        TENSORBOARD: lambda: TensorBoardLogger("tensorboard"),
    }


def fit(
    build: Callable[[], Any],
    steps: int,
    worker: Worker,
    callbacks: Sequence[Any] = (),
    epochs: int = 1,
) -> None:
    """Fit a linear model; the worker takes the time.

    Several epochs of so many steps end in a validation and a checkpoint each.
    """
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # a tiny model has no work for two, and waiting for them is noise
    with worker:
        trainer = _trainer(build(), callbacks, epochs)
        model, loader = _model(worker), _loader(steps)
        validation = _loader(steps // 10) if epochs > 1 else None
        gc.collect()  # what the fit before left behind is not this one's to clear away
        worker.start()
        trainer.fit(model, loader, validation)


def _trainer(logger: Any, callbacks: Sequence[Any], epochs: int) -> Any:
    import lightning.pytorch as pl

    return pl.Trainer(
        logger=logger,
        callbacks=list(callbacks),
        max_epochs=epochs,
        log_every_n_steps=1,
        accelerator="cpu",
        enable_progress_bar=False,
        enable_checkpointing=epochs > 1,
        enable_model_summary=False,
    )


def _loader(steps: int) -> Any:
    import torch

    torch.manual_seed(0)
    images, labels = torch.rand(16 * steps, 64), torch.randint(0, 10, (16 * steps,))
    data = torch.utils.data.TensorDataset(images, labels)
    return torch.utils.data.DataLoader(data, batch_size=16)


def _model(worker: Worker) -> Any:  # noqa: C901  it counts the methods of the class
    import lightning.pytorch as pl
    import torch
    from typing_extensions import override

    class Digits(pl.LightningModule):
        """A linear model of 64 inputs and 10 classes."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(64, 10)

        @override
        def forward(self, x: Any) -> Any:
            return self.layer(x)

        @override
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            if batch_idx and batch_idx % STEPS_OF_A_TURN == 0:
                worker.hand_on()
            x, y = batch
            loss = torch.nn.functional.cross_entropy(self(x), y)
            self.log_dict({f"loss_{number}": loss for number in range(5)})
            return loss

        @override
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            x, y = batch
            self.log("val_loss", torch.nn.functional.cross_entropy(self(x), y))

        @override
        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

        @override
        def on_train_epoch_start(self) -> None:
            worker.turn_to(LOOP)

        @override
        def on_train_epoch_end(self) -> None:
            worker.turn_to(BESIDE)

    return Digits()
