from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import prov4ml
from prov4ml import ProvenanceTrackedModel, get_metric
from provml_lightning.errors import RecordDroppedWarning
from provml_lightning.wrappers import activations, layers
from tests.integration.tracking.tracked_runs import chunks, document, network, notes, samples, start

GANG = Path(__file__).with_name("tracked_gang.py")


def test_without_a_run_and_on_silent_ranks_nothing_is_written(tmp_path: Path) -> None:
    tracked = ProvenanceTrackedModel("net", network())
    tracked(torch.ones(1, 3))
    with start(tmp_path, rank=1):
        tracked(torch.ones(1, 3))
    assert list(tmp_path.iterdir()) == []


def test_a_forward_that_raises_is_not_kept(tmp_path: Path) -> None:
    with start(tmp_path):
        tracked = ProvenanceTrackedModel("net", network())
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            tracked(torch.ones(1, 5))
        tracked(torch.ones(2, 3))
    assert len(samples(tmp_path, "net", "0=input")) == 2


def test_the_disk_s_share_is_bounded_and_the_document_says_so(tmp_path: Path) -> None:
    run = start(tmp_path)
    with pytest.warns(RecordDroppedWarning, match="no longer recorded"):  # noqa: PT031  a thread's
        tracked = ProvenanceTrackedModel("net", network(), max_bytes=20_000)
        for _ in range(200):
            tracked(torch.ones(4, 3))
        run.close()

    # A forward pass has 4 x (3 + 4 + 4 + 2) values of 4 bytes, and 4 x 4 marks of 9 bytes.
    files = list((tmp_path / "digits_0/artifacts/net").iterdir())
    assert 15_000 < sum(file.stat().st_size for file in files) <= 20_000
    assert 40 * 4 <= len(samples(tmp_path, "net", "0=input")) <= 20_000 // 352 * 4
    assert "max_bytes=20000 are reached" in str(notes(tmp_path))


def test_a_slow_disk_drops_whole_forwards_and_never_stops_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = 3 * 4 * 13 * 4  # room for three forward passes
    for module in (activations, layers):
        monkeypatch.setattr(module, "MOST_WAITING", share)
    go = threading.Event()
    to_array = activations.to_array
    monkeypatch.setattr(activations, "to_array", lambda one: go.wait(60) and to_array(one))
    with start(tmp_path):
        tracked = ProvenanceTrackedModel("net", network())
        for _ in range(10):
            tracked(torch.ones(4, 3))
        go.set()

    marks = np.concatenate([marks for marks, _ in chunks(tmp_path, "net", "2=output")])
    assert sorted(set(marks["forward"].tolist())) == [0, 1, 2]
    assert "the disk was slower than the training (7 times)" in str(notes(tmp_path))


def test_a_full_disk_stops_the_recording_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    run = start(tmp_path)
    with pytest.warns(RecordDroppedWarning, match="No space left"):  # noqa: PT031  a thread's
        tracked = ProvenanceTrackedModel("net", network(), chunk_size=1)
        monkeypatch.setattr("provml_lightning.wrappers.chunks.ChunkFile._append", full)
        for _ in range(3):
            tracked(torch.ones(4, 3))
        prov4ml.log_metric("loss", 0.5)
        run.close()

    assert "No space left on device" in str(notes(tmp_path))
    assert get_metric(tmp_path / "digits_0", "loss")["value"].tolist() == [0.5]


def test_threads_keep_their_forwards_apart(tmp_path: Path) -> None:
    with start(tmp_path), torch.no_grad():
        tracked = ProvenanceTrackedModel("net", nn.Linear(1, 1))
        tracked.weight.fill_(1.0)
        tracked.bias.zero_()

        def walk(number: int) -> None:
            for _ in range(20):
                tracked(torch.full((3, 1), float(number)))

        threads = [threading.Thread(target=walk, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    marks = np.concatenate([marks for marks, _ in chunks(tmp_path, "net", "root=input")])
    taken, gave = (samples(tmp_path, "net", f"root={kind}") for kind in ("input", "output"))
    assert np.array_equal(taken, gave)
    assert len(taken) == 4 * 20 * 3
    for number in range(80):
        assert len(set(taken[marks["forward"] == number].ravel())) == 1


def test_two_ranks_of_a_process_group_keep_their_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    subprocess.run([*command, str(GANG), "ddp", str(tmp_path)], check=True, timeout=100)

    # Rank r has the rows 10 r, 10 r + 1, ... and both have the gradients' mean in their weights.
    for label, first in (("net", 0.0), ("net~rank1", 10.0)):
        taken = samples(tmp_path, label, "root=input")
        assert taken[:, 0].tolist() == [first, first + 1.0, first + 2.0]
    weights = [float((tmp_path / f"weight-{rank}").read_text("utf-8")) for rank in (0, 1)]
    # loss = mean(w x): the gradient is the mean of x, 1 on rank 0 and 11 on rank 1, together 6.
    assert weights == [2.0 - 0.5 * 6.0] * 2


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_a_killed_process_leaves_chunks_that_can_be_read(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, str(GANG), "killed", str(tmp_path)], check=False)
    assert ended.returncode == -signal.SIGKILL

    taken = samples(tmp_path, "net", "root=input")
    assert taken[:, 0].tolist() == [float(number) for number in range(len(taken))]
    assert len(taken) >= 64
    path = tmp_path / "digits_0/artifacts/net/root=input.npys"
    os.truncate(path, path.stat().st_size - 3)
    assert len(samples(tmp_path, "net", "root=input")) == len(taken) - 16


def test_what_nobody_closed_is_in_the_document_all_the_same(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(GANG), "left", str(tmp_path)], check=True)

    folder = document(tmp_path)["entity"]["artifact/~~/net/activations"]
    assert folder["provml:forward_passes"] == 1
    assert len(samples(tmp_path, "net", "root=input")) == 5
