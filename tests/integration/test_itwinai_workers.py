"""Two real workers: exactly the records of those that were asked to log, in one run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import prov4ml
from provml_lightning.storage.contents import is_settled
from provml_lightning.storage.layout import RunLayout

pytestmark = pytest.mark.timeout(300)

HERE = Path(__file__).parents[2]
PROGRAM = """
import json, sys
import torch.distributed as dist
import prov4ml

rank, logs, joined = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3] == "group"
if joined:
    dist.init_process_group("gloo", init_method="file://" + sys.argv[4], rank=rank, world_size=2)
logger = prov4ml.ProvMLItwinAILogger(log_on_workers=logs, log_freq="batch", create_svg=False)
for turn in range(2):
    logger.create_logger_context(rank=rank, parent_run_id="", run_name=f"worker_{rank}")
    logger.save_hyperparameters({"lr": 0.1})
    logger.log(rank, f"rank_{rank}", kind="param")
    for step in range(50):
        logger.log(rank * 1000.0 + step, "train_loss", step=step, batch_idx=step)
    prov4ml.log_metric("by a verb", float(rank))
    if joined:
        dist.barrier()
    logger.destroy_logger_context()
if joined:
    dist.destroy_process_group()
"""


def _launch(folder: Path, workers: str, how: str) -> list[Path]:
    """Run both workers; return the folders of the runs."""
    launcher = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29561", "WORLD_SIZE": "2"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), workers, how, str(folder / "store")],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": f"{HERE / 'src'}:{HERE}",
                **launcher,
                "RANK": str(rank),
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    for process in processes:
        _, said = process.communicate(timeout=240)
        assert process.returncode == 0, said[-3000:]
    return sorted(Path(folder, "mllogs/prov_logs/experiment_name").iterdir())


def _values(run: Path, name: str) -> list[tuple[int, float]]:
    frame = prov4ml.get_metric(run, name)
    return list(zip(frame["rank"], frame["value"], strict=True))


@pytest.mark.parametrize("how", ["group", "launcher"])
@pytest.mark.parametrize(
    ("workers", "ranks"), [("-1", [0, 1]), ("0", [0]), ("[0, 1]", [0, 1]), ("1", [1])]
)
def test_the_record_is_that_of_the_workers_which_log(
    tmp_path: Path, workers: str, ranks: list[int], how: str
) -> None:
    runs = _launch(tmp_path, workers, how)

    assert [run.name for run in runs] == ["version_0", "version_1"]
    for run in runs:
        told: dict[str, Any] = prov4ml.list_parameters(run)
        assert told["provml:status"] == "completed"
        assert {name for name in told if name.startswith("rank_")} == {f"rank_{r}" for r in ranks}
        losses = [(rank, rank * 1000.0 + step) for rank in ranks for step in range(50)]
        assert _values(run, "train_loss") == losses
        assert _values(run, "by a verb") == [(rank, float(rank)) for rank in ranks]
        assert is_settled(RunLayout(run))
        assert (run / "prov_version_0.dot").is_file() or (run / "prov_version_1.dot").is_file()
    assert not list(Path(tmp_path, "mllogs/prov_logs").rglob(".provml-*"))
