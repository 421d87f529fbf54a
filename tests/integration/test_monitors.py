"""SystemMonitor and CarbonMonitor in real trainings, on a machine whose energy is scripted."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from lightning.pytorch import Callback

import prov4ml
from provml_lightning.errors import ProvMLWarning
from provml_lightning.runtime import sampling
from tests.spending import BETWEEN, Machine, Spending, energy, has, run_of, where
from tests.training import Digits, digits, trainer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import torch

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


def test_each_stage_has_its_own_energy_and_what_lies_between_is_in_none() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, callbacks=[prov4ml.SystemMonitor()])
    model = Spending()
    teacher.fit(model, digits(), digits())
    teacher.validate(model, digits(), verbose=False)
    teacher.test(model, digits(), verbose=False)
    teacher.predict(model, digits())

    assert energy(logger, "Training") == [4 * 5, 4 * 5]
    assert energy(logger, "Validation") == [4 * 3, 4 * 3, 4 * 3]
    assert energy(logger, "Testing") == [4 * 2]
    assert energy(logger, "Prediction") == [4 * 1]


def test_step_and_epoch_are_those_of_the_trainers_own_metrics() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, callbacks=[prov4ml.SystemMonitor()])
    model = Spending()
    teacher.fit(model, digits(), digits())
    teacher.test(model, digits(), verbose=False)

    for context, own in (
        ("Training", "loss_epoch"),
        ("Validation", "val_loss_epoch"),
        ("Testing", "test_loss"),
    ):
        assert where(logger, "cpu_energy", context) == where(logger, own, context)
    assert where(logger, "cpu_energy", "Training") == [(3, 0), (7, 1)]


def test_so_are_those_of_single_steps() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, callbacks=[prov4ml.SystemMonitor("step")])
    teacher.fit(Spending(), digits(), digits())

    assert where(logger, "cpu_energy", "Training") == where(logger, "loss_step", "Training")
    told = [step for step, _ in where(logger, "cpu_energy", "Validation")]
    assert told == [step for step, _ in where(logger, "val_loss_step", "Validation")]
    assert told == [0, 1, 2, 3, 4, 5, 6, 7]  # it goes on from one validation to the next
    assert energy(logger, "Training") == [5] * 8
    assert energy(logger, "Validation") == [3] * 8


def test_each_of_several_loaders_has_its_own_steps() -> None:
    class Twice(Spending):
        def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int) -> None:  # noqa: ARG002
            super().validation_step(batch)

    logger = prov4ml.ProvMLLogger()
    monitor = prov4ml.SystemMonitor("step", contexts=["Validation"])
    trainer(logger, callbacks=[monitor]).fit(Twice(), digits(), [digits(), digits()])

    both = [*range(4), *range(4), *range(4, 8), *range(4, 8)]
    assert [step for step, _ in where(logger, "cpu_energy")] == both
    for number in (0, 1):
        own = where(logger, f"val_loss_step/dataloader_idx_{number}")
        assert [step for step, _ in own] == list(range(8))


def test_gradient_accumulation_makes_a_step_of_several_batches() -> None:
    logger = prov4ml.ProvMLLogger()
    options = {"accumulate_grad_batches": 3, "max_epochs": 1, "limit_val_batches": 0}
    teacher = trainer(logger, callbacks=[prov4ml.SystemMonitor("step")], **options)
    teacher.fit(Spending(), digits())

    assert where(logger, "cpu_energy", "Training") == where(logger, "loss_step", "Training")
    assert energy(logger, "Training") == [15, 5]  # three batches, and the last by itself


def test_every_second_step_is_told_and_what_an_epoch_leaves_over() -> None:
    logger = prov4ml.ProvMLLogger()
    options = {"log_every_n_steps": 2, "limit_train_batches": 3, "limit_val_batches": 0}
    monitor = prov4ml.SystemMonitor(every="step", every_n=2)
    trainer(logger, callbacks=[monitor], **options).fit(Spending(), digits())

    assert [step for step, _ in where(logger, "cpu_energy")] == [1, 2, 3, 5]
    assert energy(logger) == [10, 5, 5, 10]
    assert {1, 3, 5} == {step for step, _ in where(logger, "loss_step")}


def test_every_second_epoch_is_told_and_what_the_end_leaves_over() -> None:
    logger = prov4ml.ProvMLLogger()
    monitor = prov4ml.SystemMonitor(every_n=2)
    trainer(logger, callbacks=[monitor], max_epochs=3).fit(Spending(), digits(), digits())

    assert where(logger, "cpu_energy", "Training") == [(7, 1), (11, 2)]
    assert energy(logger, "Training") == [40, 20]
    assert energy(logger, "Validation") == [24, 12]


def test_validation_within_an_epoch_is_not_in_its_values() -> None:
    logger = prov4ml.ProvMLLogger()
    options = {"val_check_interval": 2, "max_epochs": 1}
    monitor = prov4ml.SystemMonitor()
    trainer(logger, callbacks=[monitor], **options).fit(Spending(), digits(), digits())

    assert energy(logger, "Training") == [20]
    assert energy(logger, "Validation") == [12, 12]


def test_only_the_stages_that_were_chosen_are_measured() -> None:
    logger = prov4ml.ProvMLLogger()
    monitor = prov4ml.SystemMonitor(contexts=[prov4ml.Context.VALIDATION])
    trainer(logger, callbacks=[monitor]).fit(Spending(), digits(), digits())

    assert energy(logger) == [12, 12]
    assert not has(logger, "cpu_energy", "Training")


def test_the_sanity_check_is_not_measured() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, callbacks=[prov4ml.SystemMonitor()], num_sanity_val_steps=2)
    teacher.fit(Spending(), digits(), digits())

    assert energy(logger, "Validation") == [12, 12]
    assert energy(logger, "Training") == [20, 20]


@pytest.mark.parametrize("every", ["step", "epoch"])
def test_what_no_stage_took_is_in_the_next_call_so_that_all_adds_up(
    machine: Machine, every: Any
) -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, callbacks=[prov4ml.SystemMonitor(every)])
    model = Spending()
    prov4ml.log_system_metrics()  # it waits, and begins to measure when the run opens
    teacher.fit(model, digits(), digits())
    teacher.test(model, digits(), verbose=False)
    machine.use(7)
    with logger.experiment:
        prov4ml.log_system_metrics("after")

    stages = 2 * 4 * 5 + 2 * 4 * 3 + 4 * 2
    told = sum(sum(energy(logger, name)) for name in ("Training", "Validation", "Testing"))
    assert told == stages
    assert energy(logger, "after") == [machine.spent - stages]


def test_a_users_own_calls_and_monitors_share_what_was_used() -> None:
    class Asking(Spending):
        def training_step(self, batch: Any) -> torch.Tensor:
            loss = super().training_step(batch)
            prov4ml.log_system_metrics("Training", self.global_step)
            self.use(1)
            return loss

    logger = prov4ml.ProvMLLogger()
    watchers = [prov4ml.SystemMonitor("step"), prov4ml.SystemMonitor()]
    trainer(logger, callbacks=watchers).fit(Asking(), digits(), digits())

    # The first call of an epoch has what lay between, before training and around validation.
    assert sum(energy(logger, "Training")) == 2 * 4 * 6 + 3 * BETWEEN


def test_two_monitors_of_different_stages_do_not_take_from_each_other() -> None:
    for first, second in (("Training", "Validation"), ("Validation", "Training")):
        logger = prov4ml.ProvMLLogger()
        pair = [
            prov4ml.SystemMonitor("step", contexts=[first]),
            prov4ml.SystemMonitor(contexts=[second]),
        ]
        trainer(logger, callbacks=pair).fit(Spending(), digits(), digits())
        assert sum(energy(logger, "Training")) == 40
        assert sum(energy(logger, "Validation")) == 24


def test_emissions_are_energy_times_intensity() -> None:
    logger = prov4ml.ProvMLLogger(carbon_intensity=3600.0, pue=2.0)  # 1 g for 1000 J, and cooling
    teacher = trainer(logger, callbacks=[prov4ml.CarbonMonitor()])
    teacher.fit(Spending(), digits(), digits())

    run = run_of(logger)
    emitted = prov4ml.get_metric(run, "emissions", "Training")
    assert emitted["value"].tolist() == pytest.approx([0.040, 0.040], rel=1e-12)
    assert emitted["step"].tolist() == [3, 7]
    assert energy(logger, "Training") == [20, 20]
    told = prov4ml.list_metrics(run, "Training").set_index("label")
    assert told.loc["emissions", ["unit", "source"]].tolist() == ["gCO2eq", "carbon:rapl"]


def test_without_a_country_one_warning_comes_before_the_first_batch() -> None:
    logger = prov4ml.ProvMLLogger()
    heard: list[int] = []

    class Listening(Spending):
        def on_train_start(self) -> None:
            heard.append(len(caught))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ProvMLWarning)
        teacher = trainer(logger, callbacks=[prov4ml.CarbonMonitor("step")])
        teacher.fit(Listening(), digits(), digits())

    ours = [each for each in caught if issubclass(each.category, ProvMLWarning)]
    assert len(ours) == 1
    assert "no emissions" in str(ours[0].message)
    assert heard == [1]
    assert energy(logger, "Training") == [5] * 8
    assert not has(logger, "emissions")


@pytest.fixture
def scripted_watts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A CPU that draws 100 W and RAM that draws 10 W, on a machine without counters."""
    monkeypatch.undo()
    for name, value in (("CPU_TDP_W", "100"), ("CPU_IDLE_FRACTION", "1"), ("RAM_POWER_W", "10")):
        monkeypatch.setenv(f"PROVML_{name}", value)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return


class Clocking(Callback):
    """Notes when an epoch of training begins and ends, before or after the monitor does."""

    def __init__(self) -> None:
        self.began = self.ended = 0.0

    def on_train_start(self, *_: Any) -> None:
        self.began = time.monotonic()

    def on_train_epoch_end(self, *_: Any) -> None:
        self.ended = time.monotonic()


@pytest.mark.usefixtures("scripted_watts")
def test_energy_is_power_times_the_time_of_the_stage(tmp_path: Path) -> None:
    class Slow(Digits):
        def training_step(self, batch: Any) -> torch.Tensor:
            time.sleep(0.05)
            return super().training_step(batch)

        def on_fit_start(self) -> None:
            time.sleep(0.2)

    logger = prov4ml.ProvMLLogger(save_dir=tmp_path, carbon_intensity=3600.0)
    before, after = Clocking(), Clocking()
    watchers = [before, prov4ml.CarbonMonitor(), after]
    trainer(logger, callbacks=watchers, max_epochs=1).fit(Slow(), digits())

    run = run_of(logger)
    (joules,) = prov4ml.get_metric(run, "energy_consumed", "Training")["value"]
    (grams,) = prov4ml.get_metric(run, "emissions", "Training")["value"]
    (told,) = prov4ml.list_metrics(run, "Training").query("label == 'energy_consumed'")["source"]
    assert joules / 1000 == pytest.approx(grams)
    if told == "carbon:model.tdp+model.dimm":
        assert 110 * (before.ended - after.began) < joules < 110 * (after.ended - before.began)
