"""Where the monitors' values go: runs, other loggers, or nowhere."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

import prov4ml
from provml_lightning.errors import ConfigurationError
from provml_lightning.runtime import sampling
from tests.spending import Machine, Spending, energy, where
from tests.training import digits, trainer

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


@pytest.mark.parametrize("options", [{"logger": False}, {"barebones": True}])
def test_a_trainer_without_a_logger_is_refused_before_the_first_batch(
    machine: Machine, options: dict[str, Any]
) -> None:
    plain = {"log_every_n_steps": None, "enable_checkpointing": None, "logger": None}
    if "barebones" in options:
        options = {**dict.fromkeys(plain), **options, "num_sanity_val_steps": None}
    teacher = trainer(callbacks=[prov4ml.SystemMonitor()], **options)
    with pytest.raises(ConfigurationError, match=r"no logger.*ProvMLLogger\(\)"):
        teacher.fit(Spending(), digits())
    assert machine.spent == 0


def test_without_a_logger_an_open_run_takes_the_values() -> None:
    with prov4ml.start_run("open") as run:
        teacher = trainer(callbacks=[prov4ml.SystemMonitor()], logger=False)
        teacher.fit(Spending(), digits())

    values = prov4ml.get_metric(run.directory, "cpu_energy", "Training")
    assert values["value"].tolist() == [20, 20]


def test_values_go_to_the_loggers_run_whichever_run_is_open_inside() -> None:
    class Nesting(Spending):
        def on_train_epoch_start(self) -> None:
            self.inner = prov4ml.start_run("inner")

        def on_train_epoch_end(self) -> None:
            prov4ml.end_run()

    logger = prov4ml.ProvMLLogger()
    model = Nesting()
    trainer(logger, callbacks=[prov4ml.SystemMonitor("step")]).fit(model, digits())

    assert energy(logger) == [5] * 8
    assert prov4ml.list_metrics(model.inner.directory).empty


def test_a_run_that_was_ended_meanwhile_goes_on() -> None:
    class Ending(Spending):
        def on_train_epoch_start(self) -> None:
            if self.current_epoch == 1:
                prov4ml.end_run()

    logger = prov4ml.ProvMLLogger()
    trainer(logger, callbacks=[prov4ml.SystemMonitor("step")]).fit(Ending(), digits())

    # The step in which the run ended was not measured whole, and is absent.
    assert [step for step, _ in where(logger, "cpu_energy")] == [0, 1, 2, 3, 5, 6, 7]
    assert energy(logger) == [5] * 7


def test_the_logger_that_itwinai_shares_takes_the_values_too() -> None:
    logger = prov4ml.ProvMLItwinAILogger()
    trainer(logger, callbacks=[prov4ml.SystemMonitor()]).fit(Spending(), digits())
    assert energy(logger) == [20, 20]


def test_two_loggers_of_ours_both_get_the_values() -> None:
    pair = prov4ml.ProvMLLogger("one"), prov4ml.ProvMLLogger("two")
    teacher = trainer(*pair, CSVLogger("csv"), callbacks=[prov4ml.SystemMonitor()])
    teacher.fit(Spending(), digits())

    assert [energy(logger) for logger in pair] == [[20, 20], [20, 20]]
    assert "cpu_energy" not in Path("csv/lightning_logs/version_0/metrics.csv").read_text()


def test_other_loggers_all_get_values_under_a_group_of_the_monitors_own(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("PROVML_CARBON_INTENSITY", "3600")
    board = TensorBoardLogger("board")
    watchers = [prov4ml.SystemMonitor(), prov4ml.CarbonMonitor("step", contexts=["Training"])]
    teacher = trainer(CSVLogger("csv"), board, callbacks=watchers)
    teacher.fit(Spending(), digits(), digits())

    with Path("csv/lightning_logs/version_0/metrics.csv").open() as file:
        rows = list(csv.DictReader(file))

    def column(name: str) -> list[tuple[int, float]]:
        return [(int(row["step"]), float(row[name])) for row in rows if row.get(name)]

    assert column("SystemMonitor.Training/cpu_energy") == [(3, 20), (7, 20)]
    assert column("SystemMonitor.Validation/cpu_energy") == [(3, 12), (7, 12)]
    assert column("CarbonMonitor.Training/emissions") == [(n, 0.005) for n in range(8)]
    assert machine.closed == 2  # each had a sampler of its own

    events = EventAccumulator(board.log_dir).Reload()
    told = events.Scalars("SystemMonitor.Training/cpu_energy")
    assert [(each.step, each.value) for each in told] == [(3, 20), (7, 20)]
    assert not Path("prov").exists()
