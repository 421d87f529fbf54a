"""Lightning's logger contract, as Lightning tests its own loggers."""

from __future__ import annotations

import copy
import gc
import json
import math
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from jsonargparse import ArgumentParser
from lightning.fabric import Fabric
from lightning.fabric.loggers.logger import _DummyExperiment
from lightning.fabric.utilities.rank_zero import rank_zero_only
from lightning.pytorch.cli import LightningCLI
from lightning.pytorch.loggers import Logger
from lightning.pytorch.tuner import Tuner

import prov4ml
from provml_lightning.errors import ConfigurationError, RecordDroppedWarning, RecordError
from tests.training import Digits, DigitsData, digits, trainer

STATUSES = ("success", "failed", "finished", "aborted", "", "Erfolg, größtenteils")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


def everything() -> list[str]:
    return sorted(path.as_posix() for path in Path.cwd().rglob("*"))


def status(logger: Any) -> str:
    return str(json.loads(Path(logger.log_dir, "run.json").read_text())["status"])


def values(logger: Any, name: str, context: str | None = None) -> list[float]:
    return list(prov4ml.get_metric(logger.log_dir, name, context)["value"])


def labels(logger: Any) -> list[str]:
    """Return the metrics that were logged, without what the Trainer is known by itself for."""
    listed = prov4ml.list_metrics(logger.log_dir)
    return list(listed["label"][listed["source"] != "lightning"])


def parameters(logger: Any) -> dict[str, Any]:
    return prov4ml.list_parameters(logger.log_dir)


# --- what it is, and where it lies ------------------------------------------------------------


def test_it_is_a_lightning_logger_that_is_true_and_not_a_collection() -> None:
    logger = prov4ml.ProvMLLogger()
    assert isinstance(logger, Logger)
    assert bool(logger)
    assert not isinstance(logger, (Iterable, Sized))
    assert logger.group_separator == "/"


def test_building_a_logger_and_reading_its_properties_writes_and_starts_nothing() -> None:
    threads = threading.active_count()
    logger = prov4ml.ProvMLLogger(name="digits", save_dir="here")
    read = [logger.name, logger.version, logger.save_dir, logger.root_dir, logger.log_dir]
    here = Path("here").absolute()
    assert read == ["digits", 0, str(here), str(here / "digits"), str(here / "digits/version_0")]
    assert everything() == []
    assert threading.active_count() == threads


@pytest.mark.parametrize("told", STATUSES)
def test_an_unused_logger_writes_nothing_however_it_is_finalised(told: str) -> None:
    logger = prov4ml.ProvMLLogger()
    logger.save()
    logger.finalize(told)
    assert everything() == []


def test_properties_stay_as_they_are_through_use_and_another_working_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logger = prov4ml.ProvMLLogger()
    before = (logger.name, logger.version, logger.save_dir, logger.root_dir, logger.log_dir)
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    logger.log_metrics({"loss": 0.5}, 0)
    logger.finalize("success")
    after = (logger.name, logger.version, logger.save_dir, logger.root_dir, logger.log_dir)
    assert before == after
    assert Path(logger.log_dir, "run.json").is_file()
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(
    ("name", "version", "where"),
    [
        ("digits", None, "prov/digits/version_0"),
        ("digits", 7, "prov/digits/version_7"),
        ("digits", "trial a", "prov/digits/trial a"),
        ("digits", "a/b", "prov/digits/a/b"),
        ("group/digits", None, "prov/group/digits/version_0"),
        ("Größe 漢字", None, "prov/Größe 漢字/version_0"),
        ("", None, "prov/version_0"),
        (None, None, "prov/version_0"),
    ],
)
def test_a_run_lies_where_model_checkpoint_computes_its_path(
    name: str | None, version: int | str | None, where: str
) -> None:
    logger = prov4ml.ProvMLLogger(name=name, version=version)
    teacher = trainer(logger, max_epochs=1, enable_checkpointing=True)
    teacher.fit(Digits(), digits(), digits())
    run = Path(where).absolute()
    assert Path(logger.log_dir) == run
    assert Path(teacher.log_dir) == run
    assert Path(teacher.checkpoint_callback.dirpath) == run / "checkpoints"
    assert values(logger, "loss")
    assert [path.name for path in Path.cwd().iterdir()] == ["prov"]


@pytest.mark.parametrize("outside", ["..", "../x", "a/../../x", "/x", "a\0b"])
@pytest.mark.parametrize("argument", ["name", "version"])
def test_a_name_that_leads_out_of_save_dir_is_refused_by_name(argument: str, outside: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{argument}=") as caught:
        prov4ml.ProvMLLogger(**{argument: outside})
    assert repr(outside) in str(caught.value)


# --- versions ---------------------------------------------------------------------------------


def test_two_fresh_loggers_of_one_process_never_get_the_same_version() -> None:
    first, second = prov4ml.ProvMLLogger(), prov4ml.ProvMLLogger()
    assert (first.version, second.version) == (0, 1)
    second.log_metrics({"loss": 2.0})
    first.log_metrics({"loss": 1.0})
    for logger in (first, second):
        logger.finalize("success")
    assert (values(first, "loss"), values(second, "loss")) == ([1.0], [2.0])


def test_a_folder_that_exists_is_never_reused_and_gaps_are_not_filled() -> None:
    for folder in ("version_0", "version_3", "version_x", "other"):
        Path("prov/lightning_logs", folder).mkdir(parents=True)
    logger = prov4ml.ProvMLLogger()
    logger.log_metrics({"loss": 1.0})
    assert logger.version == 4
    assert list(Path("prov/lightning_logs/version_3").iterdir()) == []


def test_a_folder_that_a_user_makes_at_log_dir_is_the_runs() -> None:
    logger = prov4ml.ProvMLLogger()
    folder = Path(logger.log_dir)
    folder.mkdir(parents=True)
    (folder / "mine.txt").write_text("kept")
    logger.log_metrics({"loss": 1.0})
    logger.finalize("success")
    assert logger.version == 0
    assert (folder / "mine.txt").read_text() == "kept"
    assert values(logger, "loss") == [1.0]


def test_a_version_that_another_process_took_meanwhile_is_left_to_it() -> None:
    logger = prov4ml.ProvMLLogger()
    assert logger.version == 0
    other = Path(logger.log_dir, "journal")
    other.mkdir(parents=True)
    logger.log_metrics({"loss": 1.0})
    logger.finalize("success")
    assert logger.version == 1
    assert list(other.iterdir()) == []
    assert values(logger, "loss") == [1.0]


RACE = """
import os, sys
import prov4ml
logger_class = prov4ml.ProvMLLogger
first = logger_class(save_dir="elsewhere")  # what it imports, its children need not import
first.log_metrics({"number": 0.0})
first.finalize("success")
prov4ml.end_run()
go_read, go_write = os.pipe()
children = []
for number in range(20):
    child = os.fork()
    if child == 0:
        logger = logger_class(save_dir="prov")
        early = logger.version if number % 2 else None
        os.close(go_write)
        os.read(go_read, 1)
        logger.log_metrics({"number": float(number)}, number)
        logger.finalize("success")
        os._exit(0)
    children.append(child)
os.close(go_read)
os.close(go_write)
sys.exit(sum(os.waitpid(child, 0)[1] for child in children))
"""


def test_twenty_processes_that_start_at_once_have_twenty_runs() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", RACE], check=True)
    runs = prov4ml.list_runs_in_proj("prov")
    assert [run.name for run in runs] == [f"version_{number}" for number in range(20)]
    found = [prov4ml.get_metric(run, "number")["value"].tolist() for run in runs]
    assert sorted(found) == [[float(number)] for number in range(20)]


def test_a_version_that_exists_is_continued() -> None:
    first = prov4ml.ProvMLLogger()
    first.log_metrics({"loss": 1.0}, 0)
    first.log_hyperparams({"lr": 0.1})
    first.finalize("success")
    prov4ml.end_run()
    uuid = json.loads(Path(first.log_dir, "run.json").read_text())["uuid"]

    again = prov4ml.ProvMLLogger(version=0)
    again.log_metrics({"loss": 0.5}, 1)
    again.finalize("success")

    assert values(again, "loss") == [1.0, 0.5]
    assert parameters(again)["lr"] == 0.1
    assert json.loads(Path(again.log_dir, "run.json").read_text())["uuid"] == uuid


# --- two loggers ------------------------------------------------------------------------------


def test_two_loggers_in_one_trainer_each_keep_everything_in_a_run_of_their_own() -> None:
    first, second = prov4ml.ProvMLLogger(), prov4ml.ProvMLLogger(prefix="p")
    trainer(first, second).fit(Digits(), digits(), digits())
    assert (first.version, second.version) == (0, 1)
    assert labels(first) == ["loss", "val_loss"]
    assert labels(second) == ["p-loss", "p-val_loss"]
    assert values(first, "loss") == values(second, "p-loss")


def test_loggers_one_after_the_other_never_mix_and_leave_nothing_open() -> None:
    held = _open_files()
    loggers = [prov4ml.ProvMLLogger() for _ in range(3)]
    for number, logger in enumerate(loggers):
        trainer(logger, max_epochs=1).fit(Digits(0.1 * (number + 1)), digits(), digits())
        prov4ml.log_param("number", number)
        logger.finalize("success")
    assert [len(values(logger, "loss")) for logger in loggers] == [4, 4, 4]
    assert [parameters(logger)["number"] for logger in loggers] == [0, 1, 2]
    assert _open_files() == held
    documents = [Path(logger.log_dir, f"prov_version_{logger.version}.json") for logger in loggers]
    uuids = [json.loads(Path(logger.log_dir, "run.json").read_text())["uuid"] for logger in loggers]
    for document, others in zip(documents, (uuids[1:], uuids[::2], uuids[:2]), strict=True):
        assert not any(other in document.read_text() for other in others)


def _open_files() -> int:
    gc.collect()
    return len(os.listdir("/dev/fd"))  # noqa: PTH208  the listing itself is one in both


# --- the end ----------------------------------------------------------------------------------


@pytest.mark.parametrize("told", STATUSES)
def test_finalize_takes_any_status_twice_and_what_is_logged_afterwards_is_kept(told: str) -> None:
    threads = threading.active_count()
    logger = prov4ml.ProvMLLogger()
    logger.log_metrics({"loss": 1.0}, 0)
    logger.finalize(told)
    logger.finalize(told)
    assert values(logger, "loss") == [1.0]
    if told != "finished":  # SLURM requeues: the run goes on
        assert status(logger) != "running"

    logger.log_metrics({"loss": 0.5}, 1)
    logger.log_hyperparams({"late": True})
    logger.finalize("success")
    assert values(logger, "loss") == [1.0, 0.5]
    assert parameters(logger)["late"] is True
    assert threading.active_count() == threads


def test_after_end_run_the_logger_goes_on_in_the_same_run() -> None:
    logger = prov4ml.ProvMLLogger()
    logger.log_metrics({"loss": 1.0}, 0)
    prov4ml.end_run()
    logger.log_metrics({"loss": 0.5}, 1)
    logger.finalize("success")
    assert values(logger, "loss") == [1.0, 0.5]
    assert logger.version == 0


def test_fit_test_and_fit_again_are_one_run() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1)
    model = Digits()
    teacher.fit(model, digits(), digits())
    teacher.test(model, digits(), verbose=False)
    teacher.fit_loop.max_epochs = 2
    teacher.fit(model, digits(), digits())
    frame = prov4ml.get_metric(logger.log_dir, "loss")
    assert frame["step"].tolist() == list(range(8))
    assert len(prov4ml.list_runs_in_proj("prov")) == 1
    assert status(logger) == "completed"


# --- ranks and pickles ------------------------------------------------------------------------


def test_another_rank_writes_nothing_and_its_experiment_is_a_dummy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rank_zero_only, "rank", 1)
    logger = prov4ml.ProvMLLogger()
    assert isinstance(logger.experiment, _DummyExperiment)
    logger.experiment.log_anything("x")
    logger.log_hyperparams({"lr": 0.1})
    logger.log_graph(Digits())
    logger.log_metrics({"loss": 1.0}, 0)
    prov4ml.log_metric("loss", 1.0)
    prov4ml.log_model("model", Digits())
    logger.save()
    logger.finalize("success")
    assert (logger.name, logger.version) == ("lightning_logs", 0)
    assert Path(logger.log_dir).parent == Path(logger.root_dir)
    assert everything() == []


def test_an_unused_logger_pickles_and_its_copy_agrees_on_the_folder() -> None:
    logger = prov4ml.ProvMLLogger(name="digits", prefix="p")
    twin = pickle.loads(pickle.dumps(logger))  # noqa: S301  our own bytes
    assert everything() == []
    assert twin.log_dir == logger.log_dir
    twin.log_metrics({"loss": 1.0}, 0)
    twin.finalize("success")
    assert values(logger, "p-loss") == [1.0]


def test_a_logger_finds_the_run_that_its_copy_opened_though_somebody_else_was_faster() -> None:
    logger, other = prov4ml.ProvMLLogger(), prov4ml.ProvMLLogger()
    twin = pickle.loads(pickle.dumps(logger))  # noqa: S301  our own bytes
    assert logger.version == twin.version == 0
    folder = Path(other.root_dir, "version_0", "journal")
    folder.mkdir(parents=True)  # of a run in another process
    twin.log_metrics({"loss": 1.0}, 0)
    twin.finalize("success")
    assert (twin.version, logger.version) == (1, 1)
    logger.log_metrics({"loss": 0.5}, 1)
    logger.finalize("success")
    assert values(logger, "loss") == [1.0, 0.5]


def test_a_logger_of_a_class_without_a_hash_is_a_logger() -> None:
    @dataclass
    class Named(prov4ml.ProvMLLogger):
        label: str = "x"

        def __post_init__(self) -> None:
            super().__init__("named")

    logger = Named()
    trainer(logger, max_epochs=1).fit(Digits(), digits(), digits())
    assert len(values(logger, "loss")) == 4


@pytest.mark.parametrize("moment", ["in use", "after finalize", "after end_run"])
def test_a_used_logger_pickles_and_its_copy_goes_on_in_the_same_run(moment: str) -> None:
    logger = prov4ml.ProvMLLogger()
    logger.log_metrics({"loss": 1.0}, 0)
    if moment == "after finalize":
        logger.finalize("success")
    if moment == "after end_run":
        prov4ml.end_run()
    twin = pickle.loads(pickle.dumps(logger))  # noqa: S301  our own bytes
    twin.log_metrics({"loss": 0.5}, 1)
    twin.finalize("success")
    logger.log_metrics({"loss": 0.25}, 2)
    logger.finalize("success")
    assert twin.log_dir == logger.log_dir
    assert sorted(values(logger, "loss")) == [0.25, 0.5, 1.0]
    assert len(prov4ml.list_runs_in_proj("prov")) == 1


def test_a_trainer_pickles_with_its_logger_before_and_after_a_fit() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1)
    pickle.loads(pickle.dumps(teacher)).fit(Digits(), digits(), digits())  # noqa: S301
    assert len(values(logger, "loss")) == 4
    teacher.fit(Digits(), digits(), digits())
    twin = pickle.loads(pickle.dumps(teacher))  # noqa: S301  our own bytes
    assert twin.logger.log_dir == logger.log_dir
    assert len(values(logger, "loss")) == 8


def test_a_deep_copy_is_a_pickle() -> None:
    logger = prov4ml.ProvMLLogger()
    logger.log_metrics({"loss": 1.0}, 0)
    assert copy.deepcopy(logger).log_dir == logger.log_dir


# --- metrics ----------------------------------------------------------------------------------

SCALARS = [
    (True, 1.0),
    (7, 7.0),
    (0.1, 0.1),
    (1 / 3, 1 / 3),
    (2**70, 1180591620717411303424.0),
    (5e-324, 5e-324),
    (np.float32(0.5), 0.5),
    (np.int64(-3), -3.0),
    (np.array(2.5), 2.5),
    (np.array([2.5]), 2.5),
    (torch.tensor(0.25), 0.25),
    (torch.tensor([0.25]), 0.25),
    (torch.tensor(3), 3.0),
    (torch.tensor(True), 1.0),
    (torch.tensor(1.5, dtype=torch.bfloat16), 1.5),
    (torch.tensor(1.5, requires_grad=True), 1.5),
    (math.inf, math.inf),
    (-math.inf, -math.inf),
]


def test_every_kind_of_scalar_is_kept_exactly() -> None:
    logger = prov4ml.ProvMLLogger()
    for step, (value, _) in enumerate(SCALARS):
        logger.log_metrics({"x": value}, step)
    logger.log_metrics({"not a number": math.nan})
    logger.finalize("success")
    assert values(logger, "x") == [expected for _, expected in SCALARS]
    assert all(math.isnan(value) for value in values(logger, "not a number"))


@pytest.mark.parametrize(
    "value", [torch.ones(3), np.zeros((2, 2)), "text", None, 10**400, [1.0], 1j, object()]
)
def test_what_is_not_one_number_is_one_warning_and_leaves_its_neighbours_alone(value: Any) -> None:
    logger = prov4ml.ProvMLLogger()
    told = {"before": 1.0, "bad": value, "after": 2.0}
    with pytest.warns(RecordDroppedWarning, match="'bad'"):
        logger.log_metrics(told, 0)
    for step in (1, 2):
        logger.log_metrics(told, step)  # a second warning would be an error here
    logger.finalize("success")
    assert values(logger, "before") == [1.0] * 3
    assert values(logger, "after") == [2.0] * 3
    assert "bad" not in labels(logger)


def test_a_strict_logger_raises_for_what_is_not_one_number() -> None:
    with pytest.raises(RecordError, match="'bad'"):
        prov4ml.ProvMLLogger(strict=True).log_metrics({"bad": "text"})


def test_steps_of_every_kind_repeated_and_backwards_keep_all_their_rows() -> None:
    steps = [0, 5, 5, np.int64(3), torch.tensor(4), 2.0, None]
    logger = prov4ml.ProvMLLogger()
    for number, step in enumerate(steps):
        logger.log_metrics({"x": float(number)}, step)
    logger.finalize("success")
    frame = prov4ml.get_metric(logger.log_dir, "x")
    kept = [None if step is None or math.isnan(step) else int(step) for step in _floats(frame)]
    assert kept == [0, 5, 5, 3, 4, 2, None]
    assert frame["value"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def _floats(frame: Any) -> Iterator[float]:
    return iter(frame["step"].astype("Float64").to_numpy(dtype=float, na_value=math.nan))


def test_different_names_at_one_step_and_five_hundred_at_once() -> None:
    logger = prov4ml.ProvMLLogger()
    logger.log_metrics({"a": 1.0}, 0)
    logger.log_metrics({"b": 2.0}, 0)
    logger.log_metrics({f"m{number}": float(number) for number in range(500)}, 0)
    logger.finalize("success")
    assert len(labels(logger)) == 502
    assert values(logger, "m499") == [499.0]


ODD = ["a/b", "a\\b", "../up", "..", ".", "", " ", "A", "a", "ä", "a\u0308", "漢字", "😀", "a:b*?",
       "con", "x" * 300, "new\nline", 'quo"te', "a%2Fb", "a/", "/a", "~run"]  # fmt: skip


def test_odd_names_never_collide_and_never_leave_the_run() -> None:
    logger = prov4ml.ProvMLLogger()
    logger.log_metrics({name: float(number) for number, name in enumerate(ODD)}, 0)
    logger.finalize("success")
    assert sorted(labels(logger)) == sorted(ODD)
    assert [values(logger, name) for name in ODD] == [[float(n)] for n in range(len(ODD))]
    assert [path.name for path in Path.cwd().iterdir()] == ["prov"]


def test_a_name_that_is_no_text_becomes_it() -> None:
    logger = prov4ml.ProvMLLogger()
    logger.log_metrics({1: 2.0, None: 3.0})
    logger.finalize("success")
    assert labels(logger) == ["1", "None"]


def test_nested_values_are_flattened() -> None:
    logger = prov4ml.ProvMLLogger()
    logger.log_metrics({"a": {"b": 1.0, "c": {"d": torch.tensor(2.0)}}, "e": 3.0}, 0)
    logger.finalize("success")
    assert labels(logger) == ["a/b", "a/c/d", "e"]
    assert values(logger, "a/c/d") == [2.0]


class Told(dict[str, Any]):
    """A dictionary that can be watched dying."""


def test_the_callers_dictionary_is_neither_changed_nor_kept_nor_its_tensors() -> None:
    logger = prov4ml.ProvMLLogger()
    metrics = Told(loss=torch.tensor(0.5, requires_grad=True) * 2, epoch=3)
    same = metrics["loss"]
    logger.log_metrics(metrics, 0)
    assert metrics == {"loss": same, "epoch": 3}
    ghosts = [weakref.ref(metrics), weakref.ref(same)]
    del metrics, same
    gc.collect()
    assert [ghost() for ghost in ghosts] == [None, None]
    logger.finalize("success")
    assert prov4ml.get_metric(logger.log_dir, "loss")["epoch"].tolist() == [3]


def test_a_prefix_stands_before_every_name() -> None:
    logger = prov4ml.ProvMLLogger(prefix="tmp")
    logger.log_metrics({"test": 1.0, "a/b": 2.0}, 0)
    logger.finalize("success")
    assert labels(logger) == ["tmp-a/b", "tmp-test"]


def test_without_a_trainer_a_name_tells_its_context() -> None:
    logger = prov4ml.ProvMLLogger()
    names = ("train_loss", "val/acc", "valid.x", "Test loss", "validity", "loss")
    logger.log_metrics(dict.fromkeys(names, 1.0))
    logger.finalize("success")
    listed = prov4ml.list_metrics(logger.log_dir).set_index("label")["context"]
    assert [listed[name] for name in names[:4]] == [
        "Training",
        "Validation",
        "Validation",
        "Testing",
    ]
    assert all(listed[name] in (None, "None") for name in names[4:])


def test_many_threads_that_meet_a_fresh_logger_fill_one_run() -> None:
    logger = prov4ml.ProvMLLogger()
    together = threading.Barrier(8)

    def work(number: int) -> None:
        together.wait()
        for step in range(500):
            logger.log_metrics({f"m{number}": float(step)}, step)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    logger.finalize("success")
    assert len(prov4ml.list_runs_in_proj("prov")) == 1
    for number in range(8):
        assert values(logger, f"m{number}") == [float(step) for step in range(500)]


def test_the_cost_of_a_step_does_not_grow() -> None:
    logger = prov4ml.ProvMLLogger()
    costs = []
    for step in range(20_000):
        begin = time.perf_counter()
        logger.log_metrics({"a": 1.0, "b": 2.0}, step)
        logger.save()
        costs.append(time.perf_counter() - begin)
    early, late = sorted(costs[1000:3000])[1000], sorted(costs[-2000:])[1000]
    assert late < 3 * early


# --- hyperparameters --------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"


@dataclass
class Layer:
    width: int
    active: bool = True


def never_called() -> None:
    raise AssertionError("a hyperparameter was called")


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


HYPERPARAMETERS: list[tuple[Any, dict[str, Any]]] = [
    ({"lr": 0.1, "n": 3, "on": True, "name": "x"}, {"lr": 0.1, "n": 3, "on": True, "name": "x"}),
    (Namespace(lr=0.1, deep=Namespace(n=3)), {"lr": 0.1, "deep/n": 3}),
    (SimpleNamespace(lr=0.1), {"lr": 0.1}),
    ({"a": {"b": {"c": 1}}, "e": {}}, {"a/b/c": 1, "e": "{}"}),
    ({"colour": Colour.RED}, {"colour": "red"}),
    ({"layer": Layer(3)}, {"layer/width": 3, "layer/active": True}),
    ({"path": Path("a/b")}, {"path": "a/b"}),
    ({"x": torch.tensor(2.5), "y": np.int32(3)}, {"x": 2.5, "y": 3}),
    ({"x": None}, {"x": "None"}),
    ({1: "a", None: "b"}, {"1": "a", "None": "b"}),
    ({"x": torch.ones(2)}, {"x": "tensor([1., 1.])"}),
    ({"x": math.inf}, {"x": math.inf}),
    ({"x": 2**80}, {"x": 2**80}),
    ({}, {}),
    (None, {}),
]  # fmt: skip


@pytest.mark.parametrize(("told", "expected"), HYPERPARAMETERS)
def test_hyperparameters_are_flat_and_keep_their_types(told: Any, expected: Any) -> None:
    logger = prov4ml.ProvMLLogger()
    logger.log_hyperparams(told)
    logger.finalize("success")
    kept = parameters(logger)
    assert {name: kept[name] for name in expected} == expected
    assert [type(kept[name]) for name in expected] == [type(v) for v in expected.values()]


def test_odd_hyperparameters_are_described_and_never_called() -> None:
    recursive: dict[str, Any] = {"x": 1}
    recursive["itself"] = recursive
    logger = prov4ml.ProvMLLogger()
    logger.log_hyperparams(
        {
            "function": never_called,
            "class": Layer,
            "method": Unprintable().__repr__,
            "unpicklable": threading.Lock(),
            "unprintable": Unprintable(),
            "recursive": recursive,
            "huge": "x" * 10_000_000,
        }
    )
    logger.finalize("success")
    kept = parameters(logger)
    assert "never_called" in kept["function"]
    assert "its repr raised RuntimeError" in kept["unprintable"]
    assert kept["recursive/x"] == 1
    assert len(kept["huge"]) < 8300
    assert sum(path.stat().st_size for path in Path("prov").rglob("*") if path.is_file()) < 200_000


def test_hyperparameters_told_again_with_another_value_are_both_kept() -> None:
    logger = prov4ml.ProvMLLogger()
    logger.log_hyperparams({"lr": 0.1, "same": 1})
    logger.log_hyperparams({"lr": 0.2, "same": 1})
    logger.finalize("success")
    assert prov4ml.get_parameter(logger.log_dir, "lr", "value") == 0.2
    assert "0.1" in Path(logger.log_dir, "prov_version_0.json").read_text()


def test_hyperparameters_survive_a_run_that_fails() -> None:
    logger = prov4ml.ProvMLLogger()
    logger.log_hyperparams({"lr": 0.1})
    logger.finalize("failed")
    assert parameters(logger)["lr"] == 0.1
    assert status(logger) == "failed"


def test_metrics_may_come_with_hyperparameters_as_for_tensorboard() -> None:
    logger = prov4ml.ProvMLLogger()
    logger.log_hyperparams({"lr": 0.1}, {"hp_metric": -1.0})
    logger.log_hyperparams(Namespace(lr=0.1), metrics={"score": 2.0}, step=5)
    logger.finalize("success")
    assert values(logger, "hp_metric") == [-1.0]
    assert prov4ml.get_metric(logger.log_dir, "score")["step"].tolist() == [5]


# --- the rest of Lightning --------------------------------------------------------------------


def test_fast_dev_run_writes_nothing() -> None:
    logger = prov4ml.ProvMLLogger()
    trainer(logger, fast_dev_run=True).fit(Digits(), digits(), digits())
    assert everything() == []


@pytest.mark.filterwarnings("ignore:.*treespec.*:FutureWarning")
def test_searches_of_the_tuner_leave_no_values() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1)
    model, data = Digits(), DigitsData()
    tuner = Tuner(teacher)
    tuner.scale_batch_size(model, datamodule=data, max_trials=2, steps_per_trial=1)
    tuner.lr_find(model, datamodule=data, num_training=3, update_attr=False)
    assert teacher.loggers == [logger]
    assert labels(logger) == []

    teacher.fit(model, digits(), digits())
    assert prov4ml.get_metric(logger.log_dir, "loss")["step"].tolist() == [0, 1, 2, 3]
    assert status(logger) == "completed"


def test_fabric_logs_through_it() -> None:
    logger = prov4ml.ProvMLLogger()
    fabric = Fabric(accelerator="cpu", devices=1, loggers=[logger])
    fabric.log("loss", torch.tensor(0.5), step=3)
    fabric.log_dict({"a": 1, "b": torch.tensor([2.0])})
    prov4ml.end_run()
    assert values(logger, "loss") == [0.5]
    assert prov4ml.get_metric(logger.log_dir, "loss")["step"].tolist() == [3]
    assert (values(logger, "a"), values(logger, "b")) == ([1.0], [2.0])


YAML = """
logger:
  class_path: prov4ml.ProvMLLogger
  init_args:
    name: digits
    version: 3
    save_dir: here
    metrics_file_type: csv
    use_compressor: false
    lineage: [stages, checkpoints]
"""


@pytest.fixture
def _jsonargparse(monkeypatch: pytest.MonkeyPatch) -> None:
    # Lightning 2.6.6 calls methods that jsonargparse 4.53 has deprecated.
    monkeypatch.setenv("JSONARGPARSE_DEPRECATION_WARNINGS", "off")


@pytest.mark.usefixtures("_jsonargparse")
def test_a_configuration_file_builds_it_and_reads_back_what_it_writes() -> None:
    parser = ArgumentParser()
    parser.add_argument("--logger", type=Logger)
    first = parser.parse_string(YAML)
    second = parser.parse_string(parser.dump(first))
    for config in (first, second):
        logger = parser.instantiate_classes(config).logger
        assert type(logger) is prov4ml.ProvMLLogger
        assert logger.log_dir == str(Path("here/digits/version_3").absolute())
    bare = parser.parse_string("logger: prov4ml.ProvMLLogger")
    assert parser.parse_string(parser.dump(bare)) == bare


@pytest.mark.usefixtures("_jsonargparse")
@pytest.mark.filterwarnings("ignore:.*LightningCLI's args parameter")
def test_lightning_cli_runs_twice_each_configuration_beside_its_run() -> None:
    arguments = {
        "logger": {"class_path": "prov4ml.ProvMLLogger"},
        "accelerator": "cpu",
        "max_epochs": 1,
        "log_every_n_steps": 1,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "num_sanity_val_steps": 0,
    }
    settings = {"model": {"learning_rate": 0.05}, "data": {"batch_size": 16}}
    for version in (0, 1):
        told = {"fit": {"trainer": arguments, **settings}, "subcommand": "fit"}
        cli = LightningCLI(Digits, DigitsData, args=told, seed_everything_default=7)
        run = Path(f"prov/lightning_logs/version_{version}").absolute()
        assert cli.trainer.log_dir == str(run)
        assert (run / "config.yaml").is_file()
        assert (run / "checkpoints").is_dir()
        logger = cli.trainer.logger
        kept = parameters(logger)
        assert kept["learning_rate"] == cli.model.learning_rate == 0.05
        assert kept["batch_size"] == cli.datamodule.batch_size == 16
        assert kept["seed/global"] == cli.config["fit"]["seed_everything"] == 7
        assert kept["trainer/max_epochs"] == cli.trainer.max_epochs == 1
        assert prov4ml.get_metric(logger.log_dir, "loss")["step"].tolist() == [0, 1]
        assert status(logger) == "completed"
    LightningCLI(
        Digits, DigitsData, args=["fit", "--config", "prov/lightning_logs/version_0/config.yaml"]
    )
    assert len(prov4ml.list_runs_in_proj("prov")) == 3


def test_a_training_is_the_same_to_the_last_bit_with_and_without_the_logger() -> None:
    def train(*loggers: Logger) -> tuple[list[bytes], list[bytes]]:
        torch.manual_seed(3)
        np.random.seed(3)  # noqa: NPY002  the global state is what must not move
        model = Digits()
        trainer(*loggers, max_epochs=2).fit(model, digits(shuffle=True), digits())
        weights = [value.numpy().tobytes() for value in model.state_dict().values()]
        states = [torch.get_rng_state().numpy().tobytes(), str(np.random.get_state()).encode()]  # noqa: NPY002
        return weights, states

    assert train(prov4ml.ProvMLLogger()) == train()
