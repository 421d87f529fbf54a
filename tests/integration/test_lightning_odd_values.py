"""What is logged while a Trainer works, from odd objects, other threads and Trainers within it."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint

import prov4ml
from provml_lightning.errors import NoActiveRunError, RecordDroppedWarning
from tests.stories import document, versions
from tests.training import BATCHES, Digits, digits, trainer

if TYPE_CHECKING:
    from lightning.pytorch import Trainer


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


class Odd:
    """A number and a name that raise whatever they are asked."""

    def __float__(self) -> float:
        raise ZeroDivisionError("odd")

    __index__ = __str__ = __float__  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("values", "step"),
    [({"odd": Odd(), "even": 2.0}, 1), ({Odd(): 1.0}, 1), ({"even": 2.0}, Odd())],
)
def test_an_object_that_raises_anything_is_a_warning_and_stops_no_training(
    values: dict[Any, Any], step: Any
) -> None:
    class Logs(Digits):
        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            if batch_idx == 1:
                self.logger.log_metrics(values, step)
            return super().training_step(batch)

    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1)
    with pytest.warns(RecordDroppedWarning):
        teacher.fit(Logs(), digits(), digits())
    assert teacher.global_step == BATCHES
    assert len(prov4ml.get_metric(logger.log_dir, "loss")) == BATCHES
    if "odd" in values:
        assert prov4ml.get_metric(logger.log_dir, "even")["value"].tolist() == [2.0]


class OddSettings(dict[str, Any]):
    """Settings that cannot be listed."""

    def items(self) -> Any:
        raise ZeroDivisionError("odd")


def test_hyperparameters_that_cannot_be_listed_are_a_warning_and_stop_no_training() -> None:
    class Logs(Digits):
        def on_train_epoch_end(self) -> None:
            self.logger.log_hyperparams(OddSettings(lr=0.1))

    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1)
    with pytest.warns(RecordDroppedWarning, match="hyperparameters: .*odd"):
        teacher.fit(Logs(), digits(), digits())
    assert teacher.state.finished
    assert "hyperparameters" in str(document(logger)["activity"])


def log(logger: prov4ml.ProvMLLogger, name: str, failures: list[BaseException]) -> None:
    try:
        for step in range(300):
            logger.log_metrics({name: float(step), f"{name} too": 1.0}, step)
    except BaseException as error:  # noqa: BLE001  whatever it is, the test is to tell
        failures.append(error)


def test_threads_that_log_while_another_ends_the_run_lose_nothing() -> None:
    logger = prov4ml.ProvMLLogger()
    logger.log_metrics({"first": 0.0})
    failures: list[BaseException] = []
    names = ("a", "b", "c")
    threads = [threading.Thread(target=log, args=(logger, name, failures)) for name in names]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        with suppress(NoActiveRunError):
            prov4ml.end_run()
    for thread in threads:
        thread.join()
    with suppress(NoActiveRunError):
        prov4ml.end_run()
    assert failures == []
    for name in names:
        for each in (name, f"{name} too"):
            steps = prov4ml.get_metric(logger.log_dir, each)["step"]
            assert sorted(steps) == list(range(300))


class TestsWithin(Callback):
    """Tests at the end of an epoch with a Trainer of its own that has the same logger."""

    def on_train_epoch_end(self, trainer: Trainer, module: Any) -> None:
        del module
        other = _trainer(trainer.logger, max_epochs=1)
        other.test(Digits(), digits(), verbose=False)


_trainer = trainer


def test_a_trainer_within_another_leaves_that_its_contexts_and_checkpoints() -> None:
    logger = prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint(monitor="loss", save_top_k=-1, save_weights_only=True)
    teacher = trainer(logger, enable_checkpointing=True, callbacks=[TestsWithin(), keeper])
    teacher.fit(Digits(), digits(), digits())
    prov4ml.end_run()

    loss = prov4ml.get_metric(logger.log_dir, "loss", "Training")
    assert loss["step"].tolist() == list(range(2 * BATCHES))
    assert len(prov4ml.get_metric(logger.log_dir, "test_loss", "Testing")) == 2
    listed = prov4ml.list_metrics(logger.log_dir)
    assert set(listed["context"]) == {"Training", "Validation", "Testing"}
    told = [(one["provml:step"], one["provml:epoch"]) for one in versions(logger).values()]
    assert told == [(BATCHES, 0), (2 * BATCHES, 1)]
    assert json.loads(Path(logger.log_dir, "run.json").read_text())["status"] == "completed"


class NotesItsEnd(Digits):
    """Takes down when the Trainer says that the training ends."""

    ended = 0.0

    def on_train_end(self) -> None:
        NotesItsEnd.ended = time.time()


def test_a_training_ends_when_it_does_though_another_trainer_worked_within_it() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1, callbacks=[TestsWithin()])
    teacher.fit(NotesItsEnd(), digits(), digits())
    prov4ml.end_run()
    told = document(logger)["activity"]
    ends = {
        key: datetime.fromisoformat(one["prov:endTime"]).timestamp() for key, one in told.items()
    }
    assert ends["context/Training"] >= NotesItsEnd.ended > ends["context/Testing"]
    assert ends["run/lightning_logs_0"] >= ends["context/Training"]
