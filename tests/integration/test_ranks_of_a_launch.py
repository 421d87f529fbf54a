"""Several processes of one launch, without a process group, record into one run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

import prov4ml
from provml_lightning.domain.records import Note, Status
from provml_lightning.query.overview import read_overview
from provml_lightning.runtime.recovery import recover
from provml_lightning.storage.contents import is_settled, read_contents
from provml_lightning.storage.layout import RunLayout
from provml_lightning.storage.liveness import process_place

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
import os, sys, time
from functools import partial
import prov4ml
from provml_lightning.runtime import ending, opening

project, way = sys.argv[1:]
rank = int(os.environ["RANK"])
if way == f"rank {rank} is late":
    time.sleep(3)
if way in ("too late", "named"):
    opening.find_note = partial(opening.find_note, longest=1)
    ending.wait_for_ranks = partial(ending.wait_for_ranks, longest=1)
prov4ml.start_run(
    "launch", provenance_save_dir=project, collect_all_processes=True,
    use_run_id=7 if way == "named" else None,
)
for step in range(50):
    prov4ml.log_metric("loss", 100 * rank + step, "Training", step)
prov4ml.log_param("seed", rank)
open(f"{project}/{rank} logged", "w").close()
if way == f"rank {rank} dies":
    while not os.path.exists(f"{project}/{1 - rank} logged"):
        time.sleep(0.01)
    os._exit(1)
while way == f"rank {1 - rank} dies" and not os.path.exists(f"{project}/go on"):
    time.sleep(0.01)
prov4ml.log_metric("after", rank)
prov4ml.end_run()
"""

PARTS = """
import os, sys
import torch.distributed as dist
import torch.multiprocessing as mp
import prov4ml
from provml_lightning.query.overview import read_overview


def work(rank, project):
    meeting = f"file://{project}/meeting"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    os.environ["RANK"] = str(rank)
    logger = prov4ml.ProvMLLogger("launch", save_dir=project, collect_all_processes=True)
    logger.log_metrics({"loss": 1.0}, 0)
    if rank == 0:
        logger.finalize("success")
        print([note for note in read_overview(logger.log_dir).notes if "rank" in note], flush=True)
    dist.barrier()
    if rank == 1:
        os._exit(1)


if __name__ == "__main__":
    processes = [mp.Process(target=work, args=(rank, sys.argv[1])) for rank in (0, 1)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
"""


def start(
    project: Path, ranks: int, *, way: str = "all", only: tuple[int, ...] = ()
) -> list[subprocess.Popen[str]]:
    """Start the script once per rank, as a launcher on one machine would."""
    shared = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "MASTER_PORT": "29507"}
    return [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(project), way],
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in only or range(ranks)
    ]


def launch(project: Path, ranks: int, **options: Any) -> list[str]:
    """Run all of them to their ends; return what each says."""
    return [one.communicate(timeout=90)[1] for one in start(project, ranks, **options)]


def notes(run: Path) -> list[str]:
    """Return what the document says of ranks."""
    return [note for note in read_overview(run).notes if note.startswith("ranks:")]


def rows(run: Path, name: str = "loss") -> dict[int, int]:
    found: dict[int, int] = prov4ml.get_metric(run, name).groupby("rank").size().to_dict()
    return found


def test_all_ranks_are_in_one_run_with_a_rank_column(tmp_path: Path) -> None:
    assert launch(tmp_path, 3) == [""] * 3
    (run,) = prov4ml.list_runs_in_proj(tmp_path)
    loss = prov4ml.get_metric(run, "loss", context="Training")
    assert loss.groupby("rank").size().to_dict() == {0: 50, 1: 50, 2: 50}
    assert loss[loss["rank"] == 2]["value"].tolist() == [200.0 + step for step in range(50)]
    assert sorted(prov4ml.list_parameters(run)["seed"]) == [0, 1, 2]


def test_a_second_launch_gets_a_run_of_its_own(tmp_path: Path) -> None:
    assert launch(tmp_path, 2) == launch(tmp_path, 2) == ["", ""]
    assert [run.name for run in prov4ml.list_runs_in_proj(tmp_path)] == ["launch_0", "launch_1"]
    for run in prov4ml.list_runs_in_proj(tmp_path):
        assert len(prov4ml.get_metric(run, "loss")) == 100


CUT_OFF = "ranks: rank {} was cut off before its end; what it logged until then is here"


def test_what_a_dead_rank_logged_is_in_the_record_which_names_it(tmp_path: Path) -> None:
    (tmp_path / "go on").touch()
    launch(tmp_path, 2, way="rank 1 dies")
    (run,) = prov4ml.list_runs_in_proj(tmp_path)
    assert rows(run) == {0: 50, 1: 50}
    assert rows(run, "after") == {0: 1}
    assert notes(run) == [CUT_OFF.format(1)]
    assert prov4ml.get_parameter(run, "run/launch_0", "status") == "completed"


def test_a_rank_that_dies_after_the_documents_were_written_is_named_in_those_of_the_end(
    tmp_path: Path,
) -> None:
    """A Trainer's end writes them while the others may be about to end, or to die."""
    with subprocess.Popen(
        [sys.executable, "-c", PARTS, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        said = process.communicate(timeout=90)[0]
    assert said.splitlines() == ["[]"], "both lived then"
    (run,) = prov4ml.list_runs_in_proj(tmp_path)
    assert is_settled(RunLayout(run))
    assert notes(run) == [CUT_OFF.format(1)]


def test_a_run_without_rank_zero_says_so_while_the_others_go_on_and_afterwards(
    tmp_path: Path,
) -> None:
    zero, one = start(tmp_path, 2, way="rank 0 dies")
    zero.communicate(timeout=90)
    (run,) = prov4ml.list_runs_in_proj(tmp_path)
    first = recover(RunLayout(run))
    assert [writer.rank for writer in first.writing] == [1]
    assert notes(run) == [CUT_OFF.format(0)]

    (tmp_path / "go on").touch()
    one.communicate(timeout=90)
    last = recover(RunLayout(run))
    assert (last.whole, last.status, last.writing) == (True, Status.INCOMPLETE, ())
    assert rows(run) == {0: 50, 1: 50}
    assert rows(run, "after") == {1: 1}
    assert notes(run) == [CUT_OFF.format(0)]


def test_of_a_rank_on_another_machine_only_its_silence_is_told(tmp_path: Path) -> None:
    (tmp_path / "go on").touch()
    launch(tmp_path, 2, way="rank 1 dies")
    (run,) = prov4ml.list_runs_in_proj(tmp_path)
    layout = RunLayout(run)
    journal = layout.journal_file("rank-00001")
    here = json.dumps(process_place())
    assert journal.read_text().count(here) == 1
    journal.write_text(journal.read_text().replace(here, '"another boot/1"'))
    silent = (
        "rank 1 has not ended, and has told nothing for minutes from another machine;"
        " what it logged until then is here"
    )
    for quiet, expected in ((0, []), (301, [silent])):
        for file in layout.journal.iterdir():
            os.utime(file, (time.time() - quiet, time.time() - quiet))
        records = [record for _, record in read_contents(layout).records]
        said = [one.message for one in records if isinstance(one, Note) and one.topic == "ranks"]
        assert said == expected


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_starts_late_is_in_the_run_with_all_that_it_logged(
    tmp_path: Path, rank: int
) -> None:
    assert launch(tmp_path, 2, way=f"rank {rank} is late") == ["", ""]
    (run,) = prov4ml.list_runs_in_proj(tmp_path)
    assert rows(run) == {0: 50, 1: 50}
    assert rows(run, "after") == {0: 1, 1: 1}
    assert notes(run) == []


def test_a_rank_that_never_comes_is_noted_and_holds_nobody_for_ever(tmp_path: Path) -> None:
    launch(tmp_path, 2, only=(0,))
    (run,) = prov4ml.list_runs_in_proj(tmp_path)
    (note,) = notes(run)
    assert "rank 1 had not ended when the run did" in note


def test_a_rank_that_comes_after_the_end_is_told_that_there_is_no_run_for_it(
    tmp_path: Path,
) -> None:
    launch(tmp_path, 2, only=(0,), way="too late")
    (said,) = launch(tmp_path, 2, only=(1,), way="too late")
    assert "StorageError: rank zero told within 1 s nothing of where the run lies" in said
    (run,) = prov4ml.list_runs_in_proj(tmp_path)
    assert rows(run) == {0: 50}
    assert len(notes(run)) == 1


def test_a_rank_that_comes_after_the_end_of_a_run_whose_name_it_knows_is_in_it(
    tmp_path: Path,
) -> None:
    launch(tmp_path, 2, only=(0,), way="named")
    assert launch(tmp_path, 2, only=(1,), way="named") == [""]
    (run,) = prov4ml.list_runs_in_proj(tmp_path)
    assert recover(RunLayout(run)).whole
    assert rows(run) == {0: 50, 1: 50}
    assert prov4ml.get_parameter(run, "run/launch_7", "status") == "completed"


@pytest.mark.parametrize("rank", ["1", "7"])
def test_ranks_that_were_not_asked_record_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: str
) -> None:
    monkeypatch.setenv("RANK", rank)
    with prov4ml.start_run("quiet", provenance_save_dir=tmp_path / "prov"):
        prov4ml.log_metric("loss", 1.0)
        prov4ml.log_param("lr", 0.1)
        prov4ml.log_artifact("text", {"a": 1})
    assert not (tmp_path / "prov").exists()
