"""Train on handwritten digits with the logger that Lightning and itwinai share.

In the Trainer it needs no itwinai. The same object is what itwinai's own trainers take:
``TorchTrainer(..., logger=prov4ml.ProvMLItwinAILogger())``.
"""

from __future__ import annotations

from pathlib import Path

import lightning as L
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

import prov4ml

EPOCHS = 3
Batch = tuple[torch.Tensor, torch.Tensor]


class Digits(L.LightningModule):
    """One layer that tells ten digits apart."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Linear(64, 10)

    def loss(self, batch: Batch) -> torch.Tensor:
        images, labels = batch
        return nn.functional.cross_entropy(self.model(images), labels)

    def training_step(self, batch: Batch) -> torch.Tensor:
        loss = self.loss(batch)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: Batch) -> None:
        self.log("validation_loss", self.loss(batch))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01)


def main() -> None:
    L.seed_everything(0)
    digits = load_digits()
    images = torch.tensor(digits.data / 16, dtype=torch.float32)
    data = TensorDataset(images, torch.tensor(digits.target))
    train, validation = (DataLoader(part, 64) for part in random_split(data, [1500, 297]))

    logger = prov4ml.ProvMLItwinAILogger(experiment_name="itwinai_digits", create_svg=False)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=EPOCHS,
        enable_checkpointing=False,
        log_every_n_steps=1,
        logger=[logger],
    )
    model = Digits()
    trainer.fit(model, train, validation)

    # What itwinai's users log, in itwinai's words.
    logger.log(EPOCHS, "epochs", kind="param")
    logger.log("handwritten digits, 8 x 8 pixels", "note", kind="text")
    logger.log(model, "digits", kind="best_model")
    logger.destroy_logger_context()
    print(f"The record: {Path(logger.log_dir).relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
