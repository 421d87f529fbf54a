"""Monitors through failures, copies, checkpoints and signals."""

from __future__ import annotations

import copy
import json
import pickle
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.tuner import Tuner
from torch.utils.data import DataLoader, TensorDataset

import prov4ml
from provml_lightning.callbacks import monitors
from provml_lightning.errors import (
    ConfigurationError,
    ProvMLWarning,
    RecordDroppedWarning,
    SamplerError,
)
from provml_lightning.runtime import sampling
from tests.spending import Machine, Spending, energy, run_of, where
from tests.training import Digits, digits, trainer

# Most trainings here are without validation.
pytestmark = pytest.mark.filterwarnings("ignore:You defined a `validation_step`")


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine whose energy the model scripts."""
    monkeypatch.chdir(tmp_path)
    made = Machine()
    monkeypatch.setattr(sampling, "open_machine", made.open)
    monkeypatch.setattr(Spending, "use", staticmethod(made.use), raising=False)
    return made


def test_a_strict_run_that_may_tell_no_emissions_refuses_at_the_start(machine: Machine) -> None:
    logger = prov4ml.ProvMLLogger(strict=True, disable_codecarbon=True)
    teacher = trainer(logger, callbacks=[prov4ml.CarbonMonitor()])
    with pytest.raises(ConfigurationError, match="disable_codecarbon=True"):
        teacher.fit(Spending(), digits())
    assert machine.spent == 0


def test_a_development_run_measures_and_writes_nothing(machine: Machine) -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(
        logger,
        callbacks=[prov4ml.SystemMonitor("step"), prov4ml.CarbonMonitor()],
        fast_dev_run=True,
    )
    teacher.fit(Spending(), digits(), digits())
    assert not Path("prov").exists()
    assert machine.closed == 0


def test_the_tuner_works_beside_monitors() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, callbacks=[prov4ml.SystemMonitor("step")], max_epochs=1)
    model = Spending()
    Tuner(teacher).lr_find(model, digits(), num_training=3, attr_name="learning_rate")
    teacher.fit(model, digits())
    assert energy(logger) == [5] * 4


@pytest.mark.parametrize("every", ["step", "epoch"])
def test_what_an_exception_cuts_off_is_told_and_the_exception_is_the_users(
    machine: Machine, every: Any
) -> None:
    class Failing(Spending):
        def training_step(self, batch: Any) -> torch.Tensor:
            loss = super().training_step(batch)
            if machine.spent % 1000 == 6 * 5:
                raise ValueError("the user's own")
            return loss

    threads = set(threading.enumerate())
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, callbacks=[prov4ml.SystemMonitor(every)])
    with pytest.raises(ValueError, match="the user's own"):
        teacher.fit(Failing(), digits())

    assert sum(energy(logger)) == 6 * 5
    assert where(logger, "cpu_energy")[-1] == (5, 1)
    index = json.loads((run_of(logger) / "run.json").read_text())
    assert index["status"] == "failed"
    prov4ml.end_run()
    assert set(threading.enumerate()) <= threads


def test_a_validation_that_fails_inside_an_epoch_leaves_what_both_did() -> None:
    class Failing(Spending):
        def validation_step(self, batch: Any) -> None:
            super().validation_step(batch)
            if self.trainer.fit_loop.epoch_loop.val_loop.batch_progress.current.ready == 2:
                raise ValueError("the user's own")

    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, callbacks=[prov4ml.SystemMonitor()])
    with pytest.raises(ValueError, match="the user's own"):
        teacher.fit(Failing(), digits(), digits())

    assert energy(logger, "Training") == [20]
    assert energy(logger, "Validation") == [6]


def test_a_strict_run_raises_where_another_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(monitors, "system_values", broken)
    logger = prov4ml.ProvMLLogger(strict=True)
    teacher = trainer(logger, callbacks=[prov4ml.SystemMonitor("step")])
    with pytest.raises(SamplerError, match="measures no more: RuntimeError: a bug"):
        teacher.fit(Spending(), digits())


def test_a_cut_off_training_leaves_no_sampler_of_other_loggers(machine: Machine) -> None:
    class Failing(Spending):
        def on_train_epoch_end(self) -> None:
            raise KeyboardInterrupt

    threads = set(threading.enumerate())
    handler = signal.getsignal(signal.SIGINT)
    teacher = trainer(CSVLogger("csv"), callbacks=[prov4ml.SystemMonitor()])
    with pytest.raises(SystemExit):
        teacher.fit(Failing(), digits())
    signal.signal(signal.SIGINT, handler)  # Lightning ignores it from then on
    assert machine.closed == 1
    assert set(threading.enumerate()) <= threads


def test_a_fault_of_ours_is_one_warning_and_one_note_and_the_training_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(monitors, "system_values", broken)
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, callbacks=[prov4ml.SystemMonitor("step")])
    with pytest.warns(RecordDroppedWarning, match="measures no more: RuntimeError: a bug") as told:
        teacher.fit(Spending(), digits())

    assert len([each for each in told if issubclass(each.category, ProvMLWarning)]) == 1
    assert len(where(logger, "loss_step")) == 8
    document = next(run_of(logger).glob("prov_*.json")).read_text()
    assert document.count("measures no more") == 1


def test_a_wrong_variable_of_ours_stops_the_trainer_before_the_first_batch(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("PROVML_CPU_TDP_W", "much")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    teacher = trainer(prov4ml.ProvMLLogger(), callbacks=[prov4ml.SystemMonitor()])
    with pytest.raises(ConfigurationError, match="PROVML_CPU_TDP_W"):
        teacher.fit(Spending(), digits())
    assert machine.spent == 0


def test_it_can_be_pickled_and_copied_before_during_and_after() -> None:
    # stable-pretraining #416: a lock on a callback broke every launcher that pickles.
    watchers = [prov4ml.SystemMonitor("step"), prov4ml.CarbonMonitor(), prov4ml.FlopsMonitor()]
    copies: list[Any] = []

    class Copying(Callback):
        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            ours = trainer.callbacks[:3]
            copies.append(pickle.loads(pickle.dumps(ours)))  # noqa: S301  our own
            copies.append(copy.deepcopy(ours))

    logger = prov4ml.ProvMLLogger(carbon_intensity=1.0)
    model = Copyable()
    assert pickle.dumps(watchers)
    trainer(logger, callbacks=[*watchers, Copying()], max_epochs=1).fit(model, digits())
    assert pickle.dumps(watchers)
    assert len(copies) == 8

    for ours in (copies[0], copies[-1]):
        logger = prov4ml.ProvMLLogger(carbon_intensity=1.0)
        trainer(logger, callbacks=ours, max_epochs=1).fit(model, digits())
        told = prov4ml.get_metric(run_of(logger), "cpu_energy", "Training", "rapl")
        assert told["value"].tolist() == [5] * 4


class Watched(TensorDataset):
    """Eight images that know who watches."""

    def __init__(self, watchers: list[Callback]) -> None:
        super().__init__(torch.rand(8, 64), torch.zeros(8, dtype=torch.long))
        self.watchers = watchers


def test_workers_that_are_spawned_are_given_monitors_at_work() -> None:
    # Lightning #17269: a data set that reaches a callback is pickled with it.
    watchers: list[Callback] = [prov4ml.SystemMonitor("step"), prov4ml.CarbonMonitor()]
    loader = DataLoader(
        Watched(watchers),
        batch_size=4,
        num_workers=1,
        multiprocessing_context="spawn",
        persistent_workers=True,
    )
    logger = prov4ml.ProvMLLogger(carbon_intensity=1.0)
    trainer(logger, callbacks=watchers, max_epochs=1).fit(Spending(), loader)
    told = prov4ml.get_metric(run_of(logger), "cpu_energy", "Training", "rapl")
    assert told["value"].tolist() == [5, 5]


def test_nothing_waits_while_the_trainer_works(monkeypatch: pytest.MonkeyPatch) -> None:
    # codecarbon #878: each measurement slept for half a second.
    slept: list[float] = []
    monkeypatch.setattr(sampling.time, "sleep", slept.append)
    watchers = [prov4ml.SystemMonitor("step"), prov4ml.CarbonMonitor("step")]
    logger = prov4ml.ProvMLLogger(carbon_intensity=1.0)
    trainer(logger, callbacks=watchers).fit(Spending(), digits(), digits())
    assert slept == []


class Copyable(Spending):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layer(images)


def test_checkpoints_hold_nothing_of_the_monitors() -> None:
    watchers = [prov4ml.SystemMonitor(), prov4ml.SystemMonitor("step"), prov4ml.CarbonMonitor()]
    saver = ModelCheckpoint("saved", every_n_train_steps=2)
    logger = prov4ml.ProvMLLogger(carbon_intensity=1.0)
    options = {"enable_checkpointing": True, "max_epochs": 1}
    trainer(logger, callbacks=[*watchers, saver], **options).fit(Digits(), digits())

    kept = torch.load(saver.best_model_path, weights_only=True)["callbacks"]
    assert [name for name in kept if "Monitor" in name] == []


@pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists")
def test_a_training_that_is_resumed_goes_on_in_lightnings_steps() -> None:
    saver = ModelCheckpoint("saved", save_last=True)
    first = trainer(
        prov4ml.ProvMLLogger(), callbacks=[saver], enable_checkpointing=True, max_epochs=1
    )
    first.fit(Spending(), digits())
    logger = prov4ml.ProvMLLogger()
    watchers = [prov4ml.SystemMonitor(every_n=2), saver]
    again = trainer(logger, callbacks=watchers, enable_checkpointing=True, max_epochs=4)
    again.fit(Spending(), digits(), ckpt_path="saved/last.ckpt")

    assert where(logger, "cpu_energy") == [(7, 1), (15, 3)]
    assert energy(logger) == [20, 40]


def test_signal_handlers_are_those_of_before() -> None:
    # codecarbon #1310: handlers were replaced and never put back.
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    during: list[Any] = []

    class Looking(Spending):
        def on_train_start(self) -> None:
            during.append(signal.getsignal(signal.SIGINT))

    logger = prov4ml.ProvMLLogger(carbon_intensity=1.0)
    watchers = [prov4ml.SystemMonitor(), prov4ml.CarbonMonitor()]
    trainer(logger, callbacks=watchers).fit(Looking(), digits())
    assert during == [before[signal.SIGINT]]
    assert {each: signal.getsignal(each) for each in before} == before


def test_a_training_is_the_same_to_the_last_bit_with_and_without_monitors() -> None:
    def train(*watchers: Callback) -> list[bytes]:
        torch.manual_seed(3)
        model = Copyable()
        logger = prov4ml.ProvMLLogger(carbon_intensity=1.0)
        trainer(logger, callbacks=list(watchers)).fit(model, digits(shuffle=True), digits())
        state = [value.numpy().tobytes() for value in model.state_dict().values()]
        return [*state, torch.get_rng_state().numpy().tobytes()]

    watched = train(
        prov4ml.SystemMonitor("step"), prov4ml.CarbonMonitor("step"), prov4ml.FlopsMonitor("step")
    )
    assert watched == train()
