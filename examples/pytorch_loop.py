"""Train with a loop of your own, and tell the record what happens, call by call.

The digits ship with scikit-learn: 1 797 images of 8 x 8 pixels, nothing is downloaded.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

import prov4ml

EPOCHS = 3


@dataclass(frozen=True)
class Scale:
    """What is done to the images before they are learned."""

    by: float

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        return images * self.by


def main() -> None:
    torch.manual_seed(0)
    prov4ml.start_run(
        prov_user_namespace="www.example.org",
        experiment_name="pytorch_loop",
        provenance_save_dir="prov",
        collect_all_processes=True,
        save_after_n_logs=100,
    )
    transform = Scale(1 / 16)
    prov4ml.log_param("dataset transformation", transform)

    digits = load_digits()
    images = transform(torch.tensor(digits.data, dtype=torch.float32))
    parts = random_split(TensorDataset(images, torch.tensor(digits.target)), [1500, 297])
    train, validation = (DataLoader(part, batch_size=32) for part in parts)
    prov4ml.log_dataset("train_dataset", train)
    prov4ml.log_dataset("val_dataset", validation)

    model = nn.Linear(64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    prov4ml.log_param("optimizer", optimizer)
    prov4ml.log_param("loss_fn", "cross_entropy")

    for epoch in range(EPOCHS):
        for batch, labels in train:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch), labels)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            prov4ml.log_metric("Loss", loss, prov4ml.Context.TRAINING, step=epoch)
        prov4ml.save_model_version("digits", model, prov4ml.Context.TRAINING, step=epoch)

        with torch.no_grad():
            for batch, labels in validation:
                loss = F.cross_entropy(model(batch), labels)
                prov4ml.log_metric("Loss", loss, prov4ml.Context.VALIDATION, step=epoch)

    prov4ml.log_model("digits_final", model)
    prov4ml.end_run(create_graph=True, create_svg=True, create_rocrate=True)
    own = [run for run in prov4ml.list_runs_in_proj("prov") if run.name.startswith("pytorch_loop_")]
    print(f"The record: {own[-1]}")


if __name__ == "__main__":
    main()
