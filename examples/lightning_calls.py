"""Call the library inside a LightningModule: the calls go to the run of the logger.

The digits ship with scikit-learn: 1 797 images of 8 x 8 pixels, nothing is downloaded.
"""

from __future__ import annotations

import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

import prov4ml

EPOCHS = 2
BATCH_SIZE = 64


class Digits(L.LightningModule):
    """One layer that tells ten digits apart."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Linear(64, 10)

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        images, labels = batch
        loss = F.cross_entropy(self.model(images), labels)
        # Context and step are yours to choose; self.log takes them from the Trainer.
        prov4ml.log_metric("loss", loss, prov4ml.Context.TRAINING, step=self.current_epoch)
        return loss

    def validation_step(self, batch: list[torch.Tensor]) -> None:
        images, labels = batch
        self.log("val_loss", F.cross_entropy(self.model(images), labels))

    def on_train_epoch_end(self) -> None:
        epoch, training = self.current_epoch, prov4ml.Context.TRAINING
        prov4ml.save_model_version("digits", self, training, step=epoch)
        prov4ml.log_current_execution_time("train_epoch_time", training, epoch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        prov4ml.log_param("optimizer", optimizer)
        return optimizer


def main() -> None:
    L.seed_everything(0)
    digits = load_digits()
    images = torch.tensor(digits.data / 16, dtype=torch.float32)
    parts = random_split(TensorDataset(images, torch.tensor(digits.target)), [1500, 297])
    train, validation = (DataLoader(part, batch_size=BATCH_SIZE) for part in parts)
    # No run is open yet: these calls wait for the one that the logger opens.
    prov4ml.log_dataset("train_dataset", train)
    prov4ml.log_dataset("val_dataset", validation)

    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=EPOCHS,
        logger=[prov4ml.ProvMLLogger(name="lightning_calls")],
        enable_checkpointing=False,
        enable_progress_bar=False,
        log_every_n_steps=1,
    )
    model = Digits()
    trainer.fit(model, train, validation)
    prov4ml.log_model("digits_final", model)
    prov4ml.end_run()
    print(f"The record: {trainer.log_dir}")


if __name__ == "__main__":
    main()
