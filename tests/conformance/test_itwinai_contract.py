"""itwinai's logger contract, on the real base class where itwinai is installed, else on ours."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch.loggers import Logger
from PIL import Image
from torch import nn

import prov4ml
import provml_lightning
from provml_lightning.errors import (
    ConfigurationError,
    RecordDroppedWarning,
    RecordError,
    SamplerUnavailableError,
)
from provml_lightning.loggers.itwinai_base import Base, ItwinaiLogger
from tests.training import Digits, digits, trainer


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


def made(**options: Any) -> prov4ml.ProvMLItwinAILogger:
    """Return a logger that draws nothing."""
    return prov4ml.ProvMLItwinAILogger(**{"create_svg": False, **options})


def rows(run: str | Path, name: str, context: str | None = None) -> list[tuple[int, float]]:
    frame = prov4ml.get_metric(run, name, context)
    return list(zip(frame["step"], frame["value"], strict=True))


def entities(run: str | Path) -> dict[str, dict[str, Any]]:
    (path,) = Path(run).glob("prov_*.json")
    document = json.loads(path.read_text("utf-8"))
    return {entity.get("prov:label"): entity for entity in document["entity"].values()}


def kept(logger: Any, name: str) -> Path:
    """Return the file that an entity of the logger's run names."""
    return Path(logger.log_dir, entities(logger.log_dir)[name]["dcterms:identifier"])


def status(run: str | Path) -> str:
    return str(prov4ml.list_parameters(run)["provml:status"])


def notes(logger: Any) -> str:
    return str(prov4ml.list_parameters(logger.log_dir)["provml:note"]).strip("[]'")


# --- what it is -------------------------------------------------------------------------------


def test_it_is_a_logger_of_both_worlds_and_building_it_writes_nothing(tmp_path: Path) -> None:
    logger = prov4ml.ProvMLItwinAILogger()
    assert isinstance(logger, Logger)
    assert isinstance(logger, prov4ml.ProvMLLogger)
    assert isinstance(logger, Base)
    assert (logger.log_freq, logger.log_on_workers, logger.worker_rank) == ("epoch", 0, 0)
    assert logger.savedir == Path("mllogs/prov_logs").absolute()
    assert (logger.experiment_id, logger.run_id) == ("experiment_name", 0)
    assert not logger.is_initialized
    assert list(tmp_path.iterdir()) == []


def test_it_takes_the_arguments_of_itwinais_own_logger_by_place_and_ours_by_name() -> None:
    theirs = prov4ml.ProvMLItwinAILogger("www.example.org", "a", "b", 10, False, False, 5, [0, 2])
    assert (theirs.name, theirs.save_dir) == ("a", str(Path("b").absolute()))
    assert (theirs.log_freq, theirs.log_on_workers) == (5, [0, 2])
    ours = prov4ml.ProvMLItwinAILogger(name="c", save_dir="d", version=3, prefix="x")
    assert ours.log_dir == str(Path("d/c/version_3").absolute())


def test_it_says_all_the_kinds_that_itwinai_names() -> None:
    assert set(prov4ml.ProvMLItwinAILogger.supported_kinds) == {
        "metric", "param", "torch", "artifact", "figure", "image", "text", "dict", "model",
        "best_model", "dataset", "watch", "flops_pb", "flops_pe", "system", "carbon",
        "execution_time", "prov_documents",
    }  # fmt: skip


@pytest.mark.parametrize("wrong", [0, -1, "always", 0.5, None])
def test_a_wrong_frequency_is_refused_at_once_and_later(wrong: Any) -> None:
    with pytest.raises(ValueError, match="Wrong value for 'log_freq'"):
        made(log_freq=wrong)
    logger = made(log_freq="batch")
    with pytest.raises(ValueError, match="Wrong value for 'log_freq'"):
        logger.log_freq = wrong
    assert logger.log_freq == "batch"


@pytest.mark.parametrize("wrong", [-2, "0", 1.0, [], [0, -1], None, True])
def test_wrong_workers_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="log_on_workers"):
        made(log_on_workers=wrong)


# --- contexts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda logger: logger.log(1.0, "loss"),
        lambda logger: logger.save_hyperparameters({"a": 1}),
        lambda logger: logger.destroy_logger_context(),
        lambda logger: logger.serialize({}, "a"),
    ],
)
def test_without_a_context_every_call_says_how_to_get_one(call: Any, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as raised:
        call(made())
    assert str(raised.value) == (
        "ProvMLItwinAILogger has not been initialized. Use either the ``start_logging`` context"
        " or the ``create_logger_context`` method."
    )
    assert list(tmp_path.iterdir()) == []


def test_a_context_that_is_made_twice_goes_on_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = made()
    logger.create_logger_context()
    logger.log(0.5, "loss", step=0)
    with caplog.at_level(logging.WARNING):
        logger.create_logger_context()
    assert caplog.messages == [
        "Trying to initialize ProvMLItwinAILogger twice.. Skipping initialization."
    ]
    logger.log(0.25, "loss", step=1)
    logger.destroy_logger_context()
    assert rows(logger.log_dir, "loss") == [(0, 0.5), (1, 0.25)]


def test_each_context_is_a_run_unless_one_is_asked_to_go_on() -> None:
    logger = made()
    for value in (1.0, 2.0):
        with logger.start_logging():
            logger.log(value, "loss")
    logger.create_logger_context(run_id=logger.run_id)
    logger.log(3.0, "loss")
    logger.destroy_logger_context()

    project = Path("mllogs/prov_logs/experiment_name")
    found = {path.name: [v for _, v in rows(path, "loss")] for path in project.iterdir()}
    assert found == {"version_0": [1.0], "version_1": [2.0, 3.0]}


def test_what_a_trainer_says_of_a_context_is_kept() -> None:
    logger = made()
    logger.create_logger_context(rank=0, parent_run_id="", run_name="worker_0", other=1)
    logger.save_hyperparameters({"lr": 0.1, "optimizer": {"momentum": 0.9}})
    logger.destroy_logger_context()
    told = prov4ml.list_parameters(logger.log_dir)
    assert (told["run_name"], told["lr"], told["optimizer/momentum"]) == ("worker_0", 0.1, 0.9)
    assert not {"parent_run_id", "other", "rank"} & set(told)


def test_an_exception_in_the_block_is_how_the_run_ended() -> None:
    logger = made()
    with pytest.raises(ZeroDivisionError), logger.start_logging():
        logger.log(1 / 0, "loss")
    assert status(logger.log_dir) == "failed"


def test_an_exception_that_was_handled_before_the_context_is_not_the_runs() -> None:
    logger = made()
    try:
        raise KeyError("no checkpoint yet")  # noqa: TRY301  handled around a whole training
    except KeyError:
        with logger.start_logging():
            logger.log(1.0, "loss")
    assert status(logger.log_dir) == "completed"


def test_a_trainer_that_fails_and_never_ends_its_context_leaves_a_whole_record() -> None:
    program = """
import prov4ml
logger = prov4ml.ProvMLItwinAILogger(create_svg=False)
logger.create_logger_context(rank=0)
logger.save_hyperparameters({"lr": 0.1})
logger.log(0.5, "train_loss", step=0)
raise RuntimeError("the trainer fails")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "the trainer fails" in done.stderr
    run = Path("mllogs/prov_logs/experiment_name/version_0")
    assert status(run) == "failed"
    assert prov4ml.get_parameter(run, "lr", "value") == 0.1
    assert rows(run, "train_loss", "Training") == [(0, 0.5)]
    assert (run / "prov_version_0.dot").is_file()
    assert not list(run.glob("journal/*.points"))


def test_a_failure_that_the_script_survives_is_no_success() -> None:
    program = """
import prov4ml
logger = prov4ml.ProvMLItwinAILogger(create_svg=False)
try:
    logger.create_logger_context(rank=0)
    raise RuntimeError
except RuntimeError:
    pass
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert status("mllogs/prov_logs/experiment_name/version_0") == "interrupted"


def test_a_worker_that_does_not_log_writes_nothing_and_neither_do_calls_there(
    tmp_path: Path,
) -> None:
    logger = made()
    logger.create_logger_context(rank=1)
    assert logger.is_initialized
    assert not logger.should_log()
    logger.save_hyperparameters({"a": 1})
    logger.log(1.0, "loss")
    logger.log(None, None, kind="prov_documents")
    assert logger.serialize({}, "a") == ""
    prov4ml.log_metric("loss", 1.0)
    logger.destroy_logger_context()
    assert not logger.is_initialized
    assert list(tmp_path.iterdir()) == []


def _monitor(logger: Any) -> None:
    """Log from another process, as itwinai's watch over the GPU does."""
    logger.is_initialized = False
    logger.create_logger_context(rank=0, parent_run_id=None, run_id=None)
    logger.log(1.0, "probing_interval", kind="param")
    logger.log(50.0, "gpu_utilization_percent", step=0)
    logger.destroy_logger_context()


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_another_process_joins_the_run_of_the_context(method: Any) -> None:
    logger = made()
    logger.create_logger_context()
    logger.log(0.5, "loss", step=0)
    process = multiprocessing.get_context(method).Process(target=_monitor, args=(logger,))
    process.start()
    process.join()
    logger.log(0.25, "loss", step=1)
    logger.destroy_logger_context()

    assert process.exitcode == 0
    assert [path.name for path in Path(logger.root_dir).iterdir()] == ["version_0"]
    assert rows(logger.log_dir, "loss") == [(0, 0.5), (1, 0.25)]
    assert rows(logger.log_dir, "gpu_utilization_percent") == [(0, 50.0)]
    assert prov4ml.get_parameter(logger.log_dir, "probing_interval", "value") == 1.0
    assert status(logger.log_dir) == "completed"


def test_it_can_be_pickled_at_any_time() -> None:
    logger = made(log_freq=3, log_on_workers=[0, 1])
    for use in (lambda: None, logger.create_logger_context, logger.destroy_logger_context):
        use()
        copy = pickle.loads(pickle.dumps(logger))  # noqa: S301  our own
        assert (copy.log_dir, copy.log_freq, copy.log_on_workers) == (logger.log_dir, 3, [0, 1])


# --- what is logged ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frequency", "batches"),
    [("epoch", []), ("batch", [0, 1, 2, 3, 4, 5, 6]), (3, [0, 3, 6]), (1, [0, 1, 2, 3, 4, 5, 6])],
)
def test_of_a_batch_is_kept_what_the_frequency_says_and_of_an_epoch_all(
    frequency: Any, batches: list[int]
) -> None:
    logger = made(log_freq=frequency)
    with logger.start_logging():
        for batch in range(7):
            logger.log(float(batch), "loss", step=batch, batch_idx=batch)
            logger.log(float(batch), "loss_epoch", step=batch)
    assert rows(logger.log_dir, "loss_epoch") == [(n, float(n)) for n in range(7)]
    listed = list(prov4ml.list_metrics(logger.log_dir)["label"])
    found = [step for step, _ in rows(logger.log_dir, "loss")] if "loss" in listed else []
    assert found == batches


def test_the_stage_is_what_is_told_or_what_the_name_says() -> None:
    logger = made()
    with logger.start_logging():
        for name in ("train_loss", "validation_loss", "test_loss", "lr", "global_validation_loss"):
            logger.log(1.0, name)
        logger.log(2.0, "train_loss", context="VALIDATION")
        logger.log(3.0, "a", context="my own")
    listed = prov4ml.list_metrics(logger.log_dir)
    assert {(row.label, row.context) for row in listed.itertuples()} == {
        ("train_loss", "Training"),
        ("validation_loss", "Validation"),
        ("global_validation_loss", "Validation"),
        ("test_loss", "Testing"),
        ("lr", None),
        ("train_loss", "Validation"),
        ("a", "my own"),
    }


def test_a_metric_may_be_any_single_number_and_come_in_a_list() -> None:
    logger = made(prefix="x")
    with logger.start_logging():
        logger.log(torch.tensor([0.5]), "loss", step=np.int64(3))
        logger.log(np.array([0.25]), "loss", step=4)
        logger.log([1, True], ["a", "b"])
    assert rows(logger.log_dir, "x-loss") == [(3, 0.5), (4, 0.25)]
    assert [value for name in "ab" for _, value in rows(logger.log_dir, f"x-{name}")] == [1.0, 1.0]


def test_figures_images_texts_and_dictionaries_become_files_that_any_tool_reads() -> None:
    import plotly.graph_objects as go
    from matplotlib.figure import Figure

    drawn = Figure()
    drawn.subplots().plot([1, 2])
    logger = made()
    with logger.start_logging():
        logger.log(drawn, "curve", "figure")
        logger.log(go.Figure(go.Scatter(y=[1, 3])), "plot", "figure")
        logger.log(Image.new("RGB", (4, 3)), "pillow", "image")
        logger.log(np.full((3, 4), 7, np.uint8), "grey", "image")
        logger.log(torch.ones(3, 2, 5), "tensor", "image", step=2)
        logger.log(np.full((3, 4), 7.5), "no pixels", "image")
        logger.log("prov4ml.py", "note", "text")
        logger.log({"a": [1, 2]}, "split", "dict")

    assert kept(logger, "curve").read_bytes().startswith(b"\x89PNG")
    plot = json.loads(kept(logger, "plot").read_text("utf-8"))
    assert (plot["data"][0]["type"], plot["data"][0]["y"]) == ("scatter", [1, 3])
    for name, size, pixel in (
        ("pillow", (4, 3), (0, 0, 0)),
        ("grey", (4, 3), 7),
        ("tensor", (5, 2), (255, 255, 255)),
    ):
        with Image.open(kept(logger, name)) as image:
            assert (image.size, image.getpixel((0, 0))) == (size, pixel)
    assert np.load(kept(logger, "no pixels")).tolist() == [[7.5] * 4] * 3
    assert kept(logger, "note").read_text() == "prov4ml.py"
    assert json.loads(kept(logger, "split").read_text()) == {"a": [1, 2]}
    types = {name: entities(logger.log_dir)[name]["prov:type"] for name in ("curve", "grey")}
    assert "provml:Figure" in str(types["curve"])
    assert "provml:Image" in str(types["grey"])


def test_files_models_and_data_become_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "split.csv").write_text("a,b\n")
    net = nn.Linear(4, 2)
    logger = made()
    with logger.start_logging():
        logger.log(str(tmp_path / "split.csv"), "split", "artifact")
        logger.log([1, 2], "numbers", "artifact")
        logger.log(net, "net", "model", step=1)
        logger.log(net, "net", "model", step=2)
        logger.log(net, "best", "best_model")
        logger.log(net, "watched", "watch")
        logger.log(net, "weights", "torch")
        logger.log({"model": net.state_dict(), "epoch": 3}, "checkpoint", "torch")
        logger.log(torch.arange(3), "tensor", "torch")

    assert kept(logger, "split").read_text() == "a,b\n"
    assert json.loads(kept(logger, "numbers").read_text()) == [1, 2]
    versions = entities(logger.log_dir)
    assert [versions[f"net_{n}"]["provml:step"] for n in (0, 1)] == [1, 2]
    for name in ("best", "weights"):
        state = torch.load(kept(logger, name), weights_only=True)
        assert torch.equal(state["weight"], net.weight)
    assert torch.load(kept(logger, "checkpoint"), weights_only=True)["epoch"] == 3
    assert torch.load(kept(logger, "tensor"), weights_only=True).tolist() == [0, 1, 2]
    assert prov4ml.get_parameter(logger.log_dir, "watched", "total_params") == 10
    assert len(json.loads(kept(logger, "watched_layers.json").read_text())) == 1
    assert "dcterms:identifier" not in entities(logger.log_dir)["watched"]


def test_data_parameters_and_times_become_what_they_are() -> None:
    logger = made()
    with logger.start_logging():
        logger.log(digits(), "train_data", "torch")
        logger.log(digits().dataset, "samples", "dataset")
        logger.log(8, "train_size", "param")
        logger.log(None, "so far", "execution_time")

    assert prov4ml.get_parameter(logger.log_dir, "train_data", "total_batches") == 4
    assert prov4ml.get_parameter(logger.log_dir, "samples", "total_samples") == 32
    assert prov4ml.get_parameter(logger.log_dir, "train_size", "value") == 8
    ((_, seconds),) = rows(logger.log_dir, "so far")
    assert 0 < seconds < 120


def test_the_documents_are_written_when_they_are_asked_for() -> None:
    logger = made()
    logger.create_logger_context()
    logger.log(1.0, "loss")
    logger.log(None, None, kind="prov_documents")
    found = {path.name for path in Path(logger.log_dir).glob("prov_*")}
    logger.destroy_logger_context()
    assert found == {"prov_version_0.json", "prov_version_0.dot"}


class Machine:
    """What is asked of the measuring verbs, each of which this machine has or has not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failure: Exception | None = None) -> None:
        self.asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.failure = failure
        for what in ("flops_per_batch", "flops_per_epoch", "system_metrics", "carbon_metrics"):
            verb = f"log_{what}"
            monkeypatch.setattr(provml_lightning, verb, self.verb(verb), raising=False)

    def verb(self, name: str) -> Any:
        def ask(*args: Any, **kwargs: Any) -> None:
            self.asked.append((name, args, kwargs))
            if self.failure is not None:
                raise self.failure

        return ask


def test_what_is_measured_is_asked_of_the_verbs(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, logger = Machine(monkeypatch), made()
    net, batch, data = object(), object(), object()
    with logger.start_logging():
        logger.log((net, batch), "b", "flops_pb", step=1)
        logger.log((net, data), "train_e", "flops_pe", step=2)
        logger.log(None, None, "system", step=3, context="training")
        logger.log(None, "carbon", "carbon", step=4)
    assert machine.asked == [
        ("log_flops_per_batch", ("b", net, batch), {"context": None, "step": 1}),
        ("log_flops_per_epoch", ("train_e", net, data), {"context": "Training", "step": 2}),
        ("log_system_metrics", ("Training", 3), {}),
        ("log_carbon_metrics", (None, 4), {}),
    ]


def test_what_the_machine_cannot_measure_is_one_warning_and_one_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Machine(monkeypatch, SamplerUnavailableError("no sensor"))
    logger = made(strict=True)
    logger.create_logger_context()
    with pytest.warns(RecordDroppedWarning, match="no sensor"):
        logger.log(None, "carbon", "carbon", step=0)
    logger.log(None, "carbon", "carbon", step=1)  # a second warning would be an error
    logger.destroy_logger_context()
    assert notes(logger) == "carbon: no sensor"


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ([1.0, 2.0], "metric"),
        ("nowhere", "artifact"),
        (object(), "model"),
        (nn.Linear(1, 1), "flops_pb"),
    ],
)
def test_an_item_that_cannot_be_kept_is_a_warning_and_a_note_or_strictly_an_error(
    item: Any, kind: str
) -> None:
    logger = made()
    logger.create_logger_context()
    with pytest.warns(RecordDroppedWarning):
        logger.log(item, "thing", kind)
    logger.destroy_logger_context()
    assert f"{kind} 'thing'" in notes(logger)
    strict = made(strict=True)
    with strict.start_logging(), pytest.raises(RecordError):
        strict.log(item, "thing", kind)


def test_a_kind_that_nobody_knows_is_an_error_that_lists_the_kinds_at_any_rank() -> None:
    logger = made()
    for rank in (0, 1):
        logger.create_logger_context(rank=rank)
        with pytest.raises(ConfigurationError, match=r"'histo'.*'artifact', 'best_model'"):
            logger.log(1.0, "loss", kind="histo")
        logger.destroy_logger_context()


def test_a_kind_that_another_logger_knows_is_passed_over() -> None:
    other = type("Other", (Base,), {"supported_kinds": ("histogram",)})
    logger = made()
    with logger.start_logging():
        logger.log([1, 2], "weights", kind="histogram")
    assert other.supported_kinds == ("histogram",)
    assert prov4ml.list_metrics(logger.log_dir).empty


def test_what_it_logs_goes_to_its_own_run_whichever_was_opened_last() -> None:
    first, second = made(experiment_name="first"), made(experiment_name="second")
    first.create_logger_context()
    second.create_logger_context()
    first.log("a", "note", "text")
    first.log(1, "number", "param")
    prov4ml.log_param("of the innermost", 2)
    second.destroy_logger_context()
    first.destroy_logger_context()
    assert kept(first, "note").read_text() == "a"
    assert "note" not in entities(second.log_dir)
    assert "number" not in prov4ml.list_parameters(second.log_dir)
    assert prov4ml.get_parameter(second.log_dir, "of the innermost", "value") == 2


def test_an_object_is_serialised_into_the_run_and_never_as_a_pickle() -> None:
    logger = made()
    with logger.start_logging():
        paths = [
            Path(logger.serialize(item, name))
            for item, name in (({"a": 1}, "plain"), (SimpleNamespace(b=2), "../foreign"))
        ]
    assert json.loads(paths[0].read_text()) == {"a": 1}
    assert paths[1].read_text() == "namespace(b=2)"
    assert all(path.parent == Path(logger.log_dir, "artifacts") for path in paths)
    assert kept(logger, "plain") == paths[0]


# --- in Lightning -----------------------------------------------------------------------------

_VARYING = {
    "dcterms:created", "prov:atTime", "prov:endTime", "prov:startTime", "prov:time",
    "provml:first_time", "provml:last_time", "provml:pid", "provml:run_uuid", "provml:sha256",
    "yprov:file_size",
}  # fmt: skip

_SECONDS = {"provml:first", "provml:last", "provml:min", "provml:max"}


def statements(run: str) -> dict[str, list[Any]]:
    """Return what a document says, each kind of statement, without ids of its own and times."""
    (path,) = Path(run).glob("prov_*.json")
    document = json.loads(path.read_text("utf-8"))
    del document["prefix"]
    elements = ("entity", "activity", "agent")
    return {
        kind: sorted(
            (name if kind in elements else "", json.dumps(_steady(told), sort_keys=True))
            for name, told in stated.items()
        )
        for kind, stated in document.items()
    }


def _steady(told: Any) -> Any:
    one = told[0] if isinstance(told, list) else told
    seconds = _SECONDS if one.get("prov:label") == "epoch_time" else set()
    return {name: value for name, value in one.items() if name not in _VARYING | seconds}


def test_the_record_of_a_lightning_training_is_that_of_our_lightning_logger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for make in (prov4ml.ProvMLLogger, prov4ml.ProvMLItwinAILogger):
        folder = tmp_path / "same"
        folder.mkdir()
        monkeypatch.chdir(folder)
        torch.manual_seed(7)
        logger = make(name="digits", save_dir="prov", version=0)
        teacher = trainer(logger, enable_checkpointing=True)
        teacher.fit(Digits(), digits(), digits())
        teacher.test(Digits(), digits(), verbose=False)
        prov4ml.end_run()
        found.append((statements(logger.log_dir), prov4ml.list_metrics(logger.log_dir)))
        folder.rename(tmp_path / make.__name__)
    (ours, our_rows), (both, their_rows) = found
    assert ours == both
    assert {"entity", "activity", "agent", "used", "wasGeneratedBy", "hadMember"} <= set(ours)
    columns = ["label", "context", "source", "rows", "first", "last", "min", "max"]
    logged = our_rows["label"] != "epoch_time"
    assert our_rows[columns][logged].equals(their_rows[columns][logged])
    assert our_rows[columns[:4]].equals(their_rows[columns[:4]])
    assert {"wasDerivedFrom", "wasInvalidatedBy", "wasInformedBy"} <= set(ours)


def test_inside_a_lightning_module_it_is_an_itwinai_logger_too() -> None:
    class Noting(Digits):
        def training_step(self, batch: Any) -> torch.Tensor:
            self.logger.log(1.5, "seen", step=self.global_step)  # type: ignore[union-attr]
            return super().training_step(batch)

    logger = made()
    trainer(logger).fit(Noting(), digits(), digits())
    assert logger.is_initialized
    frame = prov4ml.get_metric(logger.log_dir, "seen", "Training")
    assert list(frame["epoch"]) == [0] * 4 + [1] * 4
    logger.log(2.0, "after")
    logger.destroy_logger_context()
    assert list(prov4ml.get_metric(logger.log_dir, "after")["value"]) == [2.0]


# --- with and without itwinai -----------------------------------------------------------------


def test_it_never_imports_itwinais_torch_nor_what_itwinai_drags_along() -> None:
    program = """
import sys, prov4ml
assert "itwinai" not in sys.modules
prov4ml.ProvMLItwinAILogger
dragged = ("itwinai.torch", "mlflow", "ray", "wandb", "yprov4ml", "hydra")
print(*(name for name in dragged if name in sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n"


def test_without_itwinai_both_uses_work_on_a_base_of_our_own() -> None:
    program = """
import sys
sys.modules["itwinai"] = None
import prov4ml
from provml_lightning.loggers.itwinai_base import Base, ItwinaiLogger
from tests.training import Digits, digits, trainer
assert Base is ItwinaiLogger
logger = prov4ml.ProvMLItwinAILogger(create_svg=False, log_freq=2)
assert isinstance(logger, ItwinaiLogger)
with logger.start_logging(rank=0):
    for batch in range(4):
        logger.log(float(batch), "train_loss", step=batch, batch_idx=batch)
lightning = prov4ml.ProvMLItwinAILogger(create_svg=False)
trainer(lightning).fit(Digits(), digits(), digits())
print(logger.log_dir, lightning.log_dir, sep="\\n")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    first, second = done.stdout.split()[-2:]
    assert rows(first, "train_loss", "Training") == [(0, 0.0), (2, 2.0)]
    assert len(rows(second, "loss", "Training")) == 8


@pytest.mark.parametrize("frequency", ["epoch", "batch", 1, 3])
@pytest.mark.parametrize("workers", [-1, 0, 2, [0, 2]])
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_our_base_decides_what_is_logged_as_itwinai_says(
    frequency: Any, workers: Any, rank: int
) -> None:
    logs = workers == -1 or rank in (workers if isinstance(workers, list) else [workers])
    wanted = {
        "epoch": [True, False, False, False],
        "batch": [True, True, True, True],
        1: [True, True, True, True],
        3: [True, True, False, True],
    }[frequency]
    ours = type("Ours", (ItwinaiLogger,), {"__abstractmethods__": frozenset()})
    for base in {ItwinaiLogger, Base}:
        kind = ours if base is ItwinaiLogger else type("T", (base,), {"__abstractmethods__": ()})
        kind.__abstractmethods__ = frozenset()
        logger = kind(log_freq=frequency, log_on_workers=workers)
        logger.worker_rank = rank
        assert [logger.should_log(batch) for batch in (None, 0, 1, 3)] == [
            logs and each for each in wanted
        ]
