"""Train on scikit-learn's digits, and look at the record that one line of code leaves behind."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import lightning as L
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

import prov4ml

Batch = tuple[torch.Tensor, torch.Tensor]


class Digits(L.LightningModule):
    """A small network that tells ten digits apart."""

    def __init__(self, hidden: int = 64, learning_rate: float = 0.01) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.model = nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 10))

    def training_step(self, batch: Batch) -> torch.Tensor:
        return self.judge("train", batch)

    def validation_step(self, batch: Batch) -> None:
        self.judge("val", batch)

    def test_step(self, batch: Batch) -> None:
        self.judge("test", batch)

    def judge(self, stage: str, batch: Batch) -> torch.Tensor:
        images, labels = batch
        scores = self.model(images)
        loss = nn.functional.cross_entropy(scores, labels)
        accuracy = (scores.argmax(dim=1) == labels).float().mean()
        self.log_dict({f"{stage}_loss": loss, f"{stage}_accuracy": accuracy})
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=self.hparams["learning_rate"])


def main() -> None:
    L.seed_everything(0)
    digits = load_digits()  # 1 797 images of 8 x 8 pixels; nothing is downloaded
    images = torch.tensor(digits.data / 16, dtype=torch.float32)
    data = TensorDataset(images, torch.tensor(digits.target))
    train, validation, test = (
        DataLoader(part, batch_size=32, shuffle=number == 0)
        for number, part in enumerate(random_split(data, [0.7, 0.15, 0.15]))
    )
    logger = prov4ml.ProvMLLogger(name="digits")
    trainer = L.Trainer(max_epochs=5, logger=[logger], log_every_n_steps=5, accelerator="cpu")
    for name, part in {"Training": train, "Validation": validation, "Testing": test}.items():
        prov4ml.log_dataset(f"digits for {name.lower()}", part, context=name)
    model = Digits()
    trainer.fit(model, train, validation)
    trainer.test(model, test)
    prov4ml.save_model_version("digits", model, prov4ml.Context.TRAINING)
    prov4ml.end_run()
    show(logger.log_dir)


def show(run: str) -> None:
    metrics = prov4ml.list_metrics(run)[["label", "context", "rows", "last"]]
    print("\nFinal metrics", metrics.to_string(index=False), sep="\n")
    times = prov4ml.list_parameters(run, prov4ml.list_activities(run)[0])
    begin, end = (datetime.fromisoformat(times[f"prov:{name}Time"]) for name in ("start", "end"))
    files = sum(path.is_file() for path in Path(run).rglob("*"))
    print(f"{end - begin}, {files} files; more of it: prov4ml show {run}")


if __name__ == "__main__":
    main()
