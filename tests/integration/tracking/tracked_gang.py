"""Programs that the tests of tracked models start: two ranks, and one that is killed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch
from torch import distributed, nn

import prov4ml
from prov4ml import ProvenanceTrackedModel


def ddp(folder: Path) -> None:
    """Take one step of SGD on two ranks."""
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    net = nn.Linear(1, 1, bias=False)
    nn.init.constant_(net.weight, 2.0)
    with prov4ml.start_run("digits", provenance_save_dir=folder, collect_all_processes=True):
        tracked = nn.parallel.DistributedDataParallel(ProvenanceTrackedModel("net", net))
        optimizer = torch.optim.SGD(tracked.parameters(), lr=0.5)
        batch = torch.arange(3.0).reshape(3, 1) + 10 * rank
        tracked(batch).mean().backward()
        optimizer.step()
    (folder / f"weight-{rank}").write_text(str(net.weight.item()), "utf-8")
    distributed.destroy_process_group()


def killed(folder: Path) -> None:
    """Run until four chunks lie on disk, and die."""
    run = prov4ml.start_run("digits", provenance_save_dir=folder)
    tracked = ProvenanceTrackedModel("net", nn.Linear(1, 1), chunk_size=16)
    file = run.directory / "artifacts" / "net" / "root=input.npys"
    number = 0
    while not file.exists() or file.stat().st_size < 4 * 400:
        tracked(torch.tensor([[float(number)]]))
        number += 1
    os.kill(os.getpid(), signal.SIGKILL)


def left(folder: Path) -> None:
    """Leave the run, and the model, to the interpreter's exit."""
    prov4ml.start_run("digits", provenance_save_dir=folder)
    ProvenanceTrackedModel("net", nn.Linear(1, 1))(torch.ones(5, 1))


if __name__ == "__main__":
    {"ddp": ddp, "killed": killed, "left": left}[sys.argv[1]](Path(sys.argv[2]))
