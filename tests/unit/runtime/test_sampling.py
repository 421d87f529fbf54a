from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prov4ml
from provml_lightning.runtime import sampling
from provml_lightning.runtime.ranks import local_rank
from provml_lightning.runtime.sampling import sampling_of
from provml_lightning.samplers.base import Opened
from provml_lightning.samplers.machine import Share

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LAUNCHERS = {
    "torchrun": "LOCAL_RANK",
    "slurm": "SLURM_LOCALID",
    "openmpi": "OMPI_COMM_WORLD_LOCAL_RANK",
    "mpich": "MPI_LOCALRANKID",
    "lsf": "JSM_NAMESPACE_LOCAL_RANK",
}


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*LAUNCHERS.values(), "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", LAUNCHERS.values(), ids=LAUNCHERS)
def test_the_local_rank_is_what_the_launcher_says(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "3")
    assert local_rank(11) == 3


def test_without_a_launcher_all_ranks_are_of_one_machine() -> None:
    assert local_rank(0) == 0
    assert local_rank(5) == 5


@pytest.mark.parametrize(
    ("together", "environ", "share"),
    [
        (False, {}, Share(machine=True, gpu=None)),
        (True, {}, Share(machine=True, gpu=None)),
        (False, {"WORLD_SIZE": "4"}, Share(machine=True, gpu=None)),
        (True, {"WORLD_SIZE": "4"}, Share(machine=True, gpu=0)),
        (True, {"WORLD_SIZE": "4", "LOCAL_RANK": "1"}, Share(machine=False, gpu=1)),
    ],
    ids=["alone", "together but one", "the one of four", "one of four", "another of four"],
)
def test_a_process_measures_its_share_of_the_machine(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    together: bool,
    environ: Mapping[str, str],
    share: Share,
) -> None:
    shares = []

    def fake(_folder: Path, asked: Share, _environ: Mapping[str, str]) -> Opened:
        shares.append(asked)
        return Opened()

    monkeypatch.setattr(sampling, "open_machine", fake)
    with prov4ml.start_run(
        "share", provenance_save_dir=tmp_path, collect_all_processes=together, rank=0
    ) as run:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        assert sampling_of(run) is sampling_of(run)
        for name in environ:
            monkeypatch.delenv(name)

    assert shares == [share]
