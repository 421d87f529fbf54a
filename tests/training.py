"""A small training on real data, for every test that needs one."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import torch
from lightning.pytorch import LightningDataModule, LightningModule, Trainer
from lightning.pytorch.loggers import Logger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

__all__ = ["BATCHES", "Digits", "DigitsData", "Witness", "digits", "trainer"]

BATCHES = 4


@cache
def _images() -> TensorDataset:
    from sklearn.datasets import load_digits  # spawned processes are given the images

    data = load_digits()
    images = torch.tensor(data.data[:32] / 16, dtype=torch.float32)
    return TensorDataset(images, torch.tensor(data.target[:32]))


def digits(*, shuffle: bool = False) -> DataLoader[Any]:
    """Return four batches of eight handwritten digits each."""
    return DataLoader(_images(), batch_size=32 // BATCHES, shuffle=shuffle)


class Digits(LightningModule):
    """One layer that tells ten digits apart."""

    def __init__(self, learning_rate: float = 0.1) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.learning_rate = learning_rate
        self.layer = nn.Linear(64, 10)

    def loss(self, batch: Any) -> torch.Tensor:
        images, labels = batch
        return nn.functional.cross_entropy(self.layer(images), labels)

    def training_step(self, batch: Any) -> torch.Tensor:
        loss = self.loss(batch)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: Any) -> None:
        self.log("val_loss", self.loss(batch))

    def test_step(self, batch: Any) -> None:
        self.log("test_loss", self.loss(batch))

    def predict_step(self, batch: Any) -> torch.Tensor:
        return self.layer(batch[0])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=self.learning_rate)


class DigitsData(LightningDataModule):
    """The same digits as a data module."""

    def __init__(self, batch_size: int = 8) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.batch_size = batch_size

    def train_dataloader(self) -> DataLoader[Any]:
        return DataLoader(_images(), batch_size=self.batch_size)

    val_dataloader = test_dataloader = train_dataloader


class Witness(Logger):
    """Keeps what the Trainer tells a logger: the stage it was in, step, epoch and values."""

    def __init__(self) -> None:
        super().__init__()
        self.trainer: Trainer | None = None
        self.told: list[tuple[str, int, int, dict[str, float]]] = []

    @property
    def name(self) -> str:
        return "witness"

    @property
    def version(self) -> int:
        return 0

    def log_hyperparams(self, params: Any) -> None:
        """Keep nothing."""

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        assert self.trainer is not None
        assert step is not None
        kept = dict(metrics)
        epoch = int(kept.pop("epoch", self.trainer.current_epoch))
        self.told.append((str(self.trainer.state.stage), step, epoch, kept))


def trainer(*loggers: Logger, **options: Any) -> Trainer:
    """Return a quiet Trainer of two epochs whose files go to the working directory."""
    made = Trainer(
        **{
            "accelerator": "cpu",
            "default_root_dir": os.getcwd(),  # noqa: PTH109  Lightning wants text
            "devices": 1,
            "enable_checkpointing": False,
            "enable_model_summary": False,
            "enable_progress_bar": False,
            "log_every_n_steps": 1,
            "logger": list(loggers),
            "max_epochs": 2,
            "num_sanity_val_steps": 0,
            **options,
        }
    )
    for logger in loggers:
        if isinstance(logger, Witness):
            logger.trainer = made
    return made
