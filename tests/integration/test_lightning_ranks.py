"""A training on two processes: rank zero records, or every rank where that was asked for."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import prov4ml

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
import sys
import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset
import prov4ml


class Tiny(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.save_hyperparameters({"rate": 0.1})

    def training_step(self, batch):
        self.log("logged", self.global_rank + 0.5)
        prov4ml.log_metric("called", self.global_rank, "Training", step=self.global_step)
        return self.layer(batch[0]).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    project, every_rank = sys.argv[1], sys.argv[2] == "every"
    logger = prov4ml.ProvMLLogger("ranks", save_dir=project, collect_all_processes=every_rank)
    trainer = L.Trainer(
        max_epochs=2, accelerator="cpu", devices=2, strategy="ddp", logger=[logger],
        log_every_n_steps=1, enable_progress_bar=False, enable_checkpointing=False,
        enable_model_summary=False,
    )
    data = TensorDataset(torch.ones(16, 2))
    trainer.fit(Tiny(), DataLoader(data, batch_size=2))
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("which", "ranks"), [("zero", {0}), ("every", {0, 1})])
def test_the_ranks_that_were_asked_are_in_one_run(
    tmp_path: Path, which: str, ranks: set[int]
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path / "prov"), which]
    subprocess.run(command, check=True, timeout=240, cwd=tmp_path)

    (run,) = prov4ml.list_runs_in_proj(tmp_path / "prov")
    assert run == tmp_path / "prov" / "ranks" / "version_0"
    # 16 samples on two ranks in batches of two: four batches an epoch and rank, two epochs.
    for name, offset in (("logged", 0.5), ("called", 0.0)):
        values = prov4ml.get_metric(run, name, context="Training")
        assert values.groupby("rank").size().to_dict() == dict.fromkeys(ranks, 8)
        assert (values["value"] == values["rank"].astype(float) + offset).all()
    assert prov4ml.get_parameter(run, "rate", "value") == 0.1
    assert prov4ml.get_parameter(run, "run/ranks_0", "status") == "completed"
