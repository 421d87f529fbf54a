"""A model whose weights are spread over two processes, as FSDP does it.

Lightning 2.6 refuses its strategy ``fsdp`` without a GPU; ``ModelParallelStrategy`` with torch's
``fully_shard`` is the same work, and runs on CPUs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import prov4ml

HERE = Path(__file__).parents[2]
PROGRAM = """
import torch
import lightning as L
import prov4ml
from lightning.pytorch.strategies import ModelParallelStrategy
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


class Sharded(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)

    def configure_model(self):
        fully_shard(self.layer, mesh=self.device_mesh["data_parallel"])

    def training_step(self, batch):
        loss = self.layer(batch[0]).pow(2).mean()
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


strategy = ModelParallelStrategy(
    data_parallel_size=2, tensor_parallel_size=1, process_group_backend="gloo"
)
trainer = L.Trainer(
    accelerator="cpu", devices=2, strategy=strategy, max_epochs=2, enable_progress_bar=False,
    enable_model_summary=False, logger=[prov4ml.ProvMLLogger("sharded")],
)
trainer.fit(Sharded(), DataLoader(TensorDataset(torch.randn(32, 8)), batch_size=4))
trainer.save_checkpoint("whole")
trainer.save_checkpoint("weights", weights_only=True)
if trainer.is_global_zero:
    print(float(trainer.callback_metrics["loss"]))
"""

pytestmark = pytest.mark.timeout(300)


def test_a_sharded_training_leaves_one_run_with_its_checkpoint_of_several_files(
    tmp_path: Path,
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{HERE / 'src'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr

    (run,) = prov4ml.list_runs_in_proj(tmp_path / "prov")
    loss = prov4ml.get_metric(run, "loss", context="Training")
    assert loss["rank"].tolist() == [0, 0]
    assert loss["value"].iloc[-1] == pytest.approx(float(ended.stdout.split()[-1]))

    told = json.loads((run / "prov_version_0.json").read_text())["entity"].values()
    first, version, *by_hand = sorted(
        (one for one in told if "provml:version" in one), key=lambda one: one["provml:version"]
    )
    assert first["dcterms:identifier"] == "checkpoints/epoch=0-step=4.ckpt"  # deleted since
    assert version["dcterms:identifier"] == "checkpoints/epoch=1-step=8.ckpt"
    assert version["dcterms:format"] == "inode/directory"
    assert version["provml:files"] >= 3
    assert len(version["provml:sha256"]) == 64
    # This strategy writes without a CheckpointIO; of the weights alone no callback is told.
    assert [one["dcterms:identifier"] for one in by_hand] == [
        str(tmp_path / "whole"), str(tmp_path / "weights"),
    ]  # fmt: skip
    assert [one["provml:step"] for one in by_hand] == [8, 8]
    assert all(len(one["provml:sha256"]) == 64 for one in by_hand)
    # No process holds all weights, so that none can count them.
    assert not any("provml:total_params" in one for one in told)
