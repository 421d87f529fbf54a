"""itwinai's own trainer on real digits, where all that it needs is installed: nox -s itwinai."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import prov4ml

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("ray", reason="TorchTrainer needs all of itwinai: nox -s itwinai")
pytestmark = pytest.mark.timeout(600)

PROGRAM = """
import sys
import torch
from itwinai.loggers import ConsoleLogger, LoggersCollection
from itwinai.torch.trainer import TorchTrainer
from sklearn.datasets import load_digits
from torch.utils.data import TensorDataset, random_split
import prov4ml

class Trainer(TorchTrainer):
    def validation_epoch(self):
        if sys.argv[1] == "fails":
            raise RuntimeError("the second half of the epoch fails")
        return super().validation_epoch()

digits = load_digits()
data = TensorDataset(torch.tensor(digits.data[:320] / 16, dtype=torch.float32),
                     torch.tensor(digits.target[:320]))
train, validation = random_split(data, [256, 64])
logger = prov4ml.ProvMLItwinAILogger(
    experiment_name="digits", log_freq="batch", create_svg=False
)
config = {"batch_size": 32, "optim_lr": 0.1, "num_workers_dataloader": 0, "pin_gpu_memory": False}
Trainer(
    config=config, epochs=2, model=torch.nn.Linear(64, 10), strategy=None, checkpoint_every=1,
    logger=LoggersCollection([ConsoleLogger(), logger]) if sys.argv[1] == "many" else logger,
).execute(train, validation, None)
"""


def _train(folder: Path, how: str) -> tuple[int, Path]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], cwd=folder, capture_output=True, check=False
    )
    return done.returncode, folder / "mllogs/prov_logs/digits/version_0"


def _rows(run: Path) -> dict[str, tuple[str | None, int]]:
    listed = prov4ml.list_metrics(run)
    return {row.label: (row.context, row.rows) for row in listed.itertuples()}


@pytest.mark.parametrize("how", ["alone", "many"])
def test_what_torch_trainer_tells_its_logger_is_in_the_record(tmp_path: Path, how: str) -> None:
    code, run = _train(tmp_path, how)

    assert code == 0
    # 256 digits in 8 batches of 32, 64 in 2; two epochs.
    assert _rows(run) == {
        "train_loss": ("Training", 16),
        "train_loss_epoch": ("Training", 2),
        "validation_loss": ("Validation", 4),
        "validation_loss_epoch": ("Validation", 2),
        "global_validation_loss_epoch": ("Validation", 2),
        "epoch_time_s": (None, 2),
    }
    assert prov4ml.get_metric(run, "train_loss")["step"].tolist() == list(range(16))
    told: dict[str, Any] = prov4ml.list_parameters(run)
    assert (told["optim_lr"], told["batch_size"], told["run_name"]) == (0.1, 32, "worker_0")
    assert told["strategy"] == "non-distributed"
    assert told["provml:status"] == "completed"
    copies = {path.name for path in (run / "artifacts").iterdir()}
    assert {"epoch_0_model.pt", "epoch_1_state.pt", "best_model_config.yaml"} <= copies


def test_a_training_that_fails_leaves_what_it_had_logged(tmp_path: Path) -> None:
    code, run = _train(tmp_path, "fails")

    assert code != 0
    assert _rows(run) == {"train_loss": ("Training", 8), "train_loss_epoch": ("Training", 1)}
    told = prov4ml.list_parameters(run)
    assert told["provml:status"] == "failed"
    assert told["optim_lr"] == 0.1
    assert not list(run.glob("journal/*.points"))
