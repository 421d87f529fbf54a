"""Fabric logs through the logger, of one process and of several, which end without a word."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import prov4ml
from provml_lightning.runtime.recovery import needs_recovery
from provml_lightning.storage.layout import RunLayout

HERE = Path(__file__).parents[2]

PROGRAM = """
import json, pathlib, sys
import torch
import prov4ml
from lightning.fabric import Fabric
from tests.training import Digits, digits

devices, every, fails = int(sys.argv[1]), "every" in sys.argv, "fails" in sys.argv
logger = prov4ml.ProvMLLogger("fabric", collect_all_processes=every)
fabric = Fabric(
    accelerator="cpu", devices=devices, strategy="ddp" if devices > 1 else "auto", loggers=[logger]
)
fabric.launch()
torch.manual_seed(7)
layer = Digits().layer
model, optimizer = fabric.setup(layer, torch.optim.SGD(layer.parameters(), lr=0.1))
losses = []
for step, (images, labels) in enumerate(fabric.setup_dataloaders(digits())):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    fabric.backward(loss)
    optimizer.step()
    fabric.log("loss", loss, step=step)
    losses.append(loss.item())
fabric.log_dict({"rank": fabric.global_rank, "images": torch.tensor(32.0)}, step=9)
pathlib.Path(f"losses{fabric.global_rank}").write_text(json.dumps(losses))
fabric.barrier()
if fails and fabric.global_rank == 0:
    raise ValueError("rank zero fails")
"""


def launch(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(PROGRAM)
    return subprocess.run(
        [sys.executable, "-W", "ignore", "program.py", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{HERE / 'src'}:{HERE}"},
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )


def run_of(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return the only run, to which nothing is to be added, and what its document says of it."""
    (run,) = prov4ml.list_runs_in_proj(folder / "prov")
    assert run == folder / "prov/fabric/version_0"
    assert not needs_recovery(RunLayout(run))
    document = json.loads((run / "prov_version_0.json").read_text())
    return run, document["activity"]["run/fabric_0"]


@pytest.mark.parametrize(
    ("devices", "which", "ranks"), [("1", "zero", [0]), ("2", "zero", [0]), ("2", "every", [0, 1])]
)
def test_what_each_process_logs_is_there_once_they_have_exited(
    tmp_path: Path, devices: str, which: str, ranks: list[int]
) -> None:
    ended = launch(tmp_path, devices, which)
    assert ended.returncode == 0, ended.stderr
    run, told = run_of(tmp_path)
    values = prov4ml.get_metric(run, "loss")
    for rank in ranks:
        own = values[values["rank"] == rank]
        seen = json.loads((tmp_path / f"losses{rank}").read_text())
        assert len(seen) == 4 // int(devices)
        assert own["value"].tolist() == seen
        assert own["step"].tolist() == list(range(len(seen)))
    assert sorted(set(values["rank"])) == ranks
    last = prov4ml.get_metric(run, "rank")
    assert list(zip(last["rank"], last["value"], last["step"], strict=True)) == [
        (rank, float(rank), 9) for rank in ranks
    ]
    assert prov4ml.get_metric(run, "images")["value"].tolist() == [32.0] * len(ranks)
    assert told["provml:status"] == "completed"
    assert "provml:note" not in told


@pytest.mark.parametrize("devices", ["1", "2"])
def test_a_script_that_fails_is_a_failed_run_with_all_that_was_logged(
    tmp_path: Path, devices: str
) -> None:
    ended = launch(tmp_path, devices, "zero", "fails")
    assert ended.returncode == 1
    assert "ValueError: rank zero fails" in ended.stderr
    run, told = run_of(tmp_path)
    assert told["provml:status"] == "failed"
    assert told["provml:error_type"] == "ValueError"
    assert told["provml:error_message"] == "rank zero fails"
    seen = json.loads((tmp_path / "losses0").read_text())
    assert prov4ml.get_metric(run, "loss")["value"].tolist() == seen
