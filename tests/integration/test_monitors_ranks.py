"""Monitors of two real processes: what is measured once, and what each measures."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

import prov4ml

HERE = Path(__file__).parents[2]

PROGRAM = """
import sys
import prov4ml
from lightning.pytorch.loggers import CSVLogger
from tests.training import Digits, digits, trainer

class Counted(Digits):
    def forward(self, images):
        return self.layer(images)

if __name__ == "__main__":
    strategy, which = sys.argv[1:]
    logger = CSVLogger("csv")
    if which != "other":
        logger = prov4ml.ProvMLLogger(collect_all_processes=which == "every")
    watchers = [
        prov4ml.SystemMonitor("step", contexts=["Training"]),
        prov4ml.CarbonMonitor(),
        prov4ml.FlopsMonitor(),
    ]
    teacher = trainer(logger, callbacks=watchers, devices=2, strategy=strategy)
    teacher.fit(Counted(), digits(), digits())
"""


def train(folder: Path, strategy: str, which: str) -> str:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": f"{HERE / 'src'}{os.pathsep}{HERE}"}
    environment |= {"CUDA_VISIBLE_DEVICES": "", "PROVML_CARBON_INTENSITY": "300"}
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), strategy, which],
        cwd=folder,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


# 32 images on two ranks in batches of 8: two batches an epoch and rank, two epochs.


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("strategy", "which", "ranks"),
    [("ddp", "zero", {0}), ("ddp", "every", {0, 1}), ("ddp_spawn", "zero", {0})],
)
def test_two_ranks_do_not_count_their_machine_twice(
    tmp_path: Path, strategy: str, which: str, ranks: set[int]
) -> None:
    # codecarbon #544: each rank reported the whole node; #416: what pickles broke.
    train(tmp_path, strategy, which)

    (run,) = prov4ml.list_runs_in_proj(tmp_path / "prov")
    told = prov4ml.list_metrics(run, "Training")
    for name in ("cpu_energy", "ram_energy", "disk_usage_gb"):
        for source in set(told.query("label == @name")["source"]):
            steps = prov4ml.get_metric(run, name, "Training", source)
            assert set(steps["rank"]) == {0}
            epochs = source.startswith("carbon:")
            assert steps["step"].tolist() == ([1, 3] if epochs else [0, 1, 2, 3])
    flops = prov4ml.get_metric(run, "flops", "Training")
    assert set(flops["rank"]) == ranks
    assert flops["value"].tolist() == [2 * 2 * 8 * 64 * 10] * (2 * len(ranks))


@pytest.mark.timeout(300)
def test_other_loggers_get_the_values_of_rank_zero_once(tmp_path: Path) -> None:
    train(tmp_path, "ddp", "other")

    with (tmp_path / "csv/lightning_logs/version_0/metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    told = [int(row["step"]) for row in rows if row.get("SystemMonitor.Training/ram_energy")]
    assert told == [0, 1, 2, 3]
