"""Nothing that goes wrong while a Trainer is watched reaches its loop."""

from __future__ import annotations

import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.tuner import Tuner
from torch.utils.data import DataLoader, TensorDataset

import prov4ml
from provml_lightning.errors import ProvMLWarning, RecordDroppedWarning, RecordError
from provml_lightning.loggers.lineage.checkpoints import Checkpoints
from provml_lightning.loggers.lineage.watcher import Lineage
from tests.training import BATCHES, Digits, digits, trainer

STORY = "provml_lightning.loggers.lineage.story"
CHECKPOINTING = "provml_lightning.loggers.lineage.checkpointing"
TELLING = "provml_lightning.loggers.lineage.telling"
FAULTS = {
    "tell_settings": f"{STORY}.tell_settings",
    "facts_of": f"{TELLING}.facts_of",
    "tell_model": f"{TELLING}.tell_model",
    "tell_data": f"{STORY}.tell_data",
    "tell_optimizers": f"{STORY}.tell_optimizers",
    "listen": f"{CHECKPOINTING}.listen",
    "paths_of_call": f"{CHECKPOINTING}.paths_of_call",
    "writes_later": f"{CHECKPOINTING}.writes_later",
    "announced": f"{CHECKPOINTING}.announced",
    "scores_of": f"{CHECKPOINTING}.scores_of",
    "context_of_save": f"{CHECKPOINTING}.context_of_save",
    "time": f"{STORY}.time.perf_counter",
    **{
        f"checkpoints: {name}": f"{CHECKPOINTING}.Checkpoints.{name}"
        for name in ("expect", "saved", "settle", "finish", "use")
    },
}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


def fail(*_: Any, **__: Any) -> Any:
    raise OSError("the disk is on fire")


def train(logger: Any) -> None:
    """Train, resume and test, with checkpoints: so that all that is watched happens."""
    keeper = ModelCheckpoint(monitor="val_loss", save_top_k=1)
    teacher = trainer(logger, max_epochs=2, enable_checkpointing=True, callbacks=[keeper])
    model = Digits()
    teacher.fit(model, digits(), digits())
    teacher.test(model, digits(), ckpt_path=keeper.best_model_path, verbose=False)
    assert teacher.global_step == 2 * BATCHES
    assert teacher.state.finished


@pytest.mark.filterwarnings("ignore::provml_lightning.errors.RecordDroppedWarning")
@pytest.mark.parametrize("place", FAULTS.values(), ids=FAULTS)
def test_a_fault_anywhere_is_a_note_and_the_training_goes_on(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = prov4ml.ProvMLLogger()
    monkeypatch.setattr(place, fail)
    train(logger)
    prov4ml.end_run()

    told = Path(logger.log_dir, "prov_version_0.json").read_text()
    assert "the disk is on fire" in told
    assert json.loads(Path(logger.log_dir, "run.json").read_text())["status"] == "completed"
    assert len(prov4ml.get_metric(logger.log_dir, "loss")) == 2 * BATCHES


def test_a_fault_is_one_warning_however_often_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checkpoints, "settle", fail)
    with pytest.warns(RecordDroppedWarning, match="the disk is on fire") as caught:
        trainer(prov4ml.ProvMLLogger(), max_epochs=5).fit(Digits(), digits(), digits())
    hooks = [str(one.message) for one in caught if "on fire" in str(one.message)]
    assert len(hooks) == len(set(hooks))


def test_a_strict_logger_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{STORY}.tell_data", fail)
    with pytest.raises(RecordError, match="on fire"):
        trainer(prov4ml.ProvMLLogger(strict=True)).fit(Digits(), digits(), digits())


class Prickly(Callback):
    """Raises at every question that is not a hook."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"nobody asks for {name}")


class Endless(TensorDataset):
    def __len__(self) -> int:
        return 16

    @property
    def transform(self) -> Any:
        raise RuntimeError("no transform")

    @property
    def data(self) -> Any:
        raise RuntimeError("no data")


class Odd(Digits):
    @property
    def unreadable(self) -> Any:
        raise RuntimeError("no such thing")

    def configure_optimizers(self) -> torch.optim.Optimizer:
        optimizer = super().configure_optimizers()
        optimizer.param_groups[0]["weird"] = object()
        optimizer.param_groups[0][3] = float("nan")
        return optimizer


def test_odd_objects_of_the_user_are_told_as_far_as_they_go() -> None:
    logger = prov4ml.ProvMLLogger()
    data = Endless(torch.rand(16, 64), torch.randint(0, 10, (16,)))
    teacher = trainer(logger, callbacks=[Prickly()])
    teacher.fit(Odd(), DataLoader(data, batch_size=8), digits())
    assert teacher.state.finished
    told = prov4ml.list_parameters(logger.log_dir)
    assert told["callback/Prickly"].endswith("test_lineage_faults.Prickly")
    assert math.isnan(told["optimizer/SGD/3"])
    assert "optimizer/SGD/weird" not in told


class Unwilling(list[Any]):
    def __len__(self) -> int:
        raise RuntimeError("nobody counts these")


def holding_itself() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


class Given(Callback):
    def __init__(self, odd: Any, plain: int = 3) -> None:
        self.odd = odd
        self.plain = plain


@pytest.mark.parametrize("odd", [Unwilling([1]), holding_itself()], ids=["unwilling", "endless"])
@pytest.mark.filterwarnings("error::provml_lightning.errors.ProvMLWarning")
def test_an_odd_argument_of_one_callback_costs_itself_alone(odd: Any) -> None:
    logger = prov4ml.ProvMLLogger()
    trainer(logger, callbacks=[Given(odd)]).fit(Digits(), digits(), digits())
    told = prov4ml.list_parameters(logger.log_dir)
    assert told["callback/Given/plain"] == 3
    assert "callback/Given/odd" not in told


@pytest.mark.filterwarnings("ignore::provml_lightning.errors.RecordDroppedWarning")
def test_a_fault_in_the_settings_does_not_cost_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{STORY}.tell_settings", fail)
    logger = prov4ml.ProvMLLogger()
    trainer(logger).fit(Digits(), digits(), digits())
    folder = Path(logger.log_dir)
    told = json.loads((folder / f"prov_{folder.name}.json").read_bytes())
    assert told["entity"]["model/~~/Digits/lightning"]["provml:total_params"] == 650


@pytest.mark.filterwarnings("error::provml_lightning.errors.ProvMLWarning")
def test_where_no_thread_can_start_checkpoints_lack_their_digest_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "provml-reader":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    logger = prov4ml.ProvMLLogger()
    train(logger)
    folder = Path(logger.log_dir)
    told = json.loads((folder / f"prov_{folder.name}.json").read_bytes())["entity"].values()
    kept = [one for one in told if one.get("provml:is_last")]
    assert [one["provml:step"] for one in kept] == [2 * BATCHES]
    assert not any("provml:sha256" in one for one in kept)


def test_the_callback_survives_a_pickle_of_its_trainer_and_is_there_once() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1)
    model = Digits()
    teacher.fit(model, digits(), digits())
    copy = deepcopy(teacher)  # through __getstate__, as a pickle
    copy.fit_loop.max_epochs = 2
    copy.fit(copy.lightning_module or Digits(), digits(), digits())
    assert sum(isinstance(one, Lineage) for one in copy.callbacks) == 1


def test_a_trainer_that_is_given_the_callbacks_of_another_is_not_told_of() -> None:
    logger = prov4ml.ProvMLLogger()
    first = trainer(logger, max_epochs=1)
    first.fit(Digits(), digits(), digits())
    other = prov4ml.ProvMLLogger(name="other")
    second = trainer(other, max_epochs=3, callbacks=first.callbacks)
    second.fit(Digits(), digits(), digits())
    assert sum(isinstance(one, Lineage) for one in second.callbacks) == 1
    first.test(Digits(), digits(), verbose=False)
    folder = Path(logger.log_dir)
    told = json.loads((folder / f"prov_{folder.name}.json").read_bytes())["entity"]
    assert told["metric/Training/epoch_time/lightning"]["provml:last_step"] == BATCHES - 1
    assert sum(isinstance(one, Lineage) for one in first.callbacks) == 1


def test_a_trainer_that_only_tries_writes_nothing() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, fast_dev_run=True)
    teacher.fit(Digits(), digits(), digits())
    assert not Path("prov").exists()
    assert not any(isinstance(one, Lineage) for one in teacher.callbacks)


class FailsAtFirst(Digits):
    def setup(self, stage: str) -> None:
        del stage
        raise ValueError("the user's own")


@pytest.mark.parametrize("strict", [False, True])
def test_an_error_before_any_stage_is_the_users_alone(
    strict: bool, recwarn: pytest.WarningsRecorder
) -> None:
    logger = prov4ml.ProvMLLogger(strict=strict)
    with pytest.raises(ValueError, match="the user's own"):
        trainer(logger).fit(FailsAtFirst(), digits(), digits())
    assert not [one for one in recwarn if issubclass(one.category, ProvMLWarning)]
    assert "KeyError" not in Path(logger.log_dir, "prov_version_0.json").read_text()


@pytest.mark.filterwarnings("ignore:.*num_workers")
def test_a_search_goes_on_under_a_strict_logger(recwarn: pytest.WarningsRecorder) -> None:
    logger = prov4ml.ProvMLLogger(strict=True)
    teacher = trainer(logger, max_epochs=1)
    assert Tuner(teacher).lr_find(Digits(), digits(), num_training=4) is not None
    teacher.fit(Digits(), digits(), digits())
    assert not [one for one in recwarn if issubclass(one.category, ProvMLWarning)]
    assert prov4ml.get_metric(logger.log_dir, "loss", "Training")["step"].tolist() == [0, 1, 2, 3]


def test_saves_of_several_threads_are_told_once_each() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger)
    teacher.fit(Digits(), digits(), digits())
    paths = [f"{number}.ckpt" for number in range(24)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(teacher.save_checkpoint, paths))
    prov4ml.end_run()
    told = json.loads(Path(logger.log_dir, "prov_version_0.json").read_text())["entity"].values()
    names = [Path(one["dcterms:identifier"]).name for one in told if "provml:version" in one]
    assert sorted(names) == sorted(paths)
