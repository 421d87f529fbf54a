"""Monitors of two real processes: what is measured once, and what each measures."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from socket import socket

import pytest

import prov4ml

HERE = Path(__file__).parents[2]

PROGRAM = """
import os, sys
import prov4ml
from lightning.pytorch.loggers import CSVLogger
from tests.fakes.clock import ManualClock
from tests.fakes.nvml import FakeGpu, FakeNvml
from tests.training import Digits, digits, trainer

if "GPUS" in os.environ:
    cool = FakeGpu("GPU-a", temperature=61, used=10 * 10**9)
    warm = FakeGpu("GPU-b", temperature=72, used=25 * 10**9)
    sys.modules["pynvml"] = FakeNvml(ManualClock(), cool, warm)

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
    nodes = int(os.environ.get("NODES", "1"))
    teacher = trainer(
        logger, callbacks=watchers, devices=2 // nodes, num_nodes=nodes, strategy=strategy
    )
    teacher.fit(Counted(), digits(), digits())
"""


def train(folder: Path, strategy: str, which: str, *nodes: dict[str, str], **more: str) -> None:
    """Run the program to its end; on each of the nodes, if any are told."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": f"{HERE / 'src'}{os.pathsep}{HERE}"}
    environment |= {"CUDA_VISIBLE_DEVICES": "", "PROVML_CARBON_INTENSITY": "300", **more}
    with ExitStack() as stack:
        processes = []
        for node in nodes or ({},):
            process = subprocess.Popen(
                [sys.executable, "-W", "ignore", str(program), strategy, which],
                cwd=folder,
                env=environment | node,
                stderr=subprocess.PIPE,
                text=True,
            )
            processes.append(stack.enter_context(process))
            stack.callback(process.kill)
        said = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), said


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
def test_the_first_rank_of_each_node_measures_its_machine(tmp_path: Path) -> None:
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "NODES": "2"}
    nodes = ({"NODE_RANK": node, "LOCAL_RANK": "0"} for node in ("0", "1"))
    train(tmp_path, "ddp", "every", *nodes, **shared)

    (run,) = prov4ml.list_runs_in_proj(tmp_path / "prov")
    told = prov4ml.list_metrics(run, "Training")
    for name in ("cpu_energy", "ram_energy", "ram_usage_gb", "disk_usage_gb"):
        (source,) = (one for one in told.query("label == @name")["source"] if "carbon" not in one)
        values = prov4ml.get_metric(run, name, "Training", source)
        assert list(zip(values["rank"], values["step"], strict=True)) == [
            (rank, step) for rank in (0, 1) for step in range(4)
        ]
        assert (values["value"] > 0).all()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("which", "seen"),
    [("every", {0: (61.0, 10.0), 1: (72.0, 25.0)}), ("zero", {0: (72.0, 35.0)})],
)
def test_each_rank_that_records_measures_its_own_gpu_and_one_alone_all_of_them(
    tmp_path: Path, which: str, seen: dict[int, tuple[float, float]]
) -> None:
    train(tmp_path, "ddp", which, GPUS="2", CUDA_VISIBLE_DEVICES="0,1")

    (run,) = prov4ml.list_runs_in_proj(tmp_path / "prov")
    for position, name in enumerate(("gpu_temperature_c", "gpu_memory_usage_gb")):
        values = prov4ml.get_metric(run, name, "Training")
        assert list(zip(values["rank"], values["step"], values["value"], strict=True)) == [
            (rank, step, told[position]) for rank, told in seen.items() for step in range(4)
        ]


@pytest.mark.timeout(300)
def test_other_loggers_get_the_values_of_rank_zero_once(tmp_path: Path) -> None:
    train(tmp_path, "ddp", "other")

    with (tmp_path / "csv/lightning_logs/version_0/metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    told = [int(row["step"]) for row in rows if row.get("SystemMonitor.Training/ram_energy")]
    assert told == [0, 1, 2, 3]
