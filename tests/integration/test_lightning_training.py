"""What the record holds is what the Trainer reports, value by value."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import Callback, LearningRateMonitor

import prov4ml
from tests.stories import document
from tests.training import BATCHES, Digits, DigitsData, Witness, digits, trainer

pytestmark = pytest.mark.usefixtures("_own_folder")

Row = tuple[int, int, float]


@pytest.fixture
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


def rows(run: str, name: str, context: str | None = None) -> list[Row]:
    frame = prov4ml.get_metric(run, name, context)
    return list(zip(frame["step"], frame["epoch"], frame["value"], strict=True))


def recorded(run: str) -> dict[tuple[str, str], list[Row]]:
    """Return every value that was logged, without what is kept of the Trainer by itself."""
    listed = prov4ml.list_metrics(run)
    listed = listed[listed["source"] != "lightning"]
    names = zip(listed["context"], listed["label"], strict=True)
    return {(context, name): rows(run, name, context) for context, name in names}


def told(witness: Witness) -> dict[tuple[str, str], list[Row]]:
    """Return what the Trainer told another logger, in the words of the record."""
    contexts = {
        "RunningStage.TRAINING": "Training",
        "RunningStage.VALIDATING": "Validation",
        "RunningStage.TESTING": "Testing",
    }
    found: dict[tuple[str, str], list[Row]] = {}
    for stage, step, epoch, metrics in witness.told:
        for name, value in metrics.items():
            found.setdefault((contexts[stage], name), []).append((step, epoch, value))
    return found


class Talkative(Digits):
    """Logs in every way that Lightning has."""

    def training_step(self, batch: Any) -> torch.Tensor:
        loss = self.loss(batch)
        self.log("both", loss, on_step=True, on_epoch=True)
        self.log("epoch_only", loss, on_step=False, on_epoch=True)
        self.log_dict({"a": loss * 2, "group/b": loss * 3, "count": 7.0})
        return loss

    def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        loss = self.loss(batch) + dataloader_idx
        self.log("val_loss", loss)
        self.log(f"val_of_{dataloader_idx}", loss, add_dataloader_idx=False)
        self.log("val_both", loss, on_step=True, on_epoch=True)
        self.log("train_lookalike", float(batch_idx))

    def on_train_epoch_end(self) -> None:
        self.log("val_lookalike", float(self.current_epoch) + 0.5)

    def on_validation_epoch_end(self) -> None:
        self.log("at_validation_end", 1.25)


def test_every_value_is_what_the_trainer_tells_its_loggers_and_reports_itself() -> None:
    logger, witness = prov4ml.ProvMLLogger(), Witness()
    teacher = trainer(logger, witness)
    model = Talkative()

    teacher.fit(model, digits(), [digits(), digits()])
    after_fit = dict(teacher.callback_metrics)
    logged = dict(teacher.logged_metrics)
    validated = teacher.validate(model, [digits(), digits()], verbose=False)
    tested = teacher.test(model, digits(), verbose=False)

    found = recorded(logger.log_dir)
    assert found == told(witness)
    assert found["Training", "both_epoch"][-1][2] == float(after_fit["both_epoch"])
    assert found["Training", "a"][-1][2] == float(logged["a"])
    assert found["Testing", "test_loss"] == [(8, 2, tested[0]["test_loss"])]
    last = found["Validation", "val_loss/dataloader_idx_1"][-1][2]
    assert last == validated[1]["val_loss/dataloader_idx_1"]


def test_steps_and_epochs_are_those_of_the_optimiser_and_contexts_those_of_the_stage() -> None:
    logger = prov4ml.ProvMLLogger()
    trainer(logger).fit(Talkative(), digits(), [digits(), digits()])

    found = recorded(logger.log_dir)
    places = {key: [(step, epoch) for step, epoch, _ in values] for key, values in found.items()}
    each_batch = [(0, 0), (1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (6, 1), (7, 1)]
    each_epoch = [(3, 0), (7, 1)]
    in_validation = [(step, epoch) for epoch in (0, 1) for step in range(4 * epoch, 4 * epoch + 4)]
    assert places == {
        ("Training", "both_step"): each_batch,
        ("Training", "both_epoch"): each_epoch,
        ("Training", "epoch_only"): each_epoch,
        ("Training", "a"): each_batch,
        ("Training", "group/b"): each_batch,
        ("Training", "count"): each_batch,
        ("Training", "val_lookalike"): each_epoch,
        ("Validation", "val_loss/dataloader_idx_0"): each_epoch,
        ("Validation", "val_loss/dataloader_idx_1"): each_epoch,
        ("Validation", "val_of_0"): each_epoch,
        ("Validation", "val_of_1"): each_epoch,
        ("Validation", "val_both_step/dataloader_idx_0"): in_validation,
        ("Validation", "val_both_step/dataloader_idx_1"): in_validation,
        ("Validation", "val_both_epoch/dataloader_idx_0"): each_epoch,
        ("Validation", "val_both_epoch/dataloader_idx_1"): each_epoch,
        ("Validation", "train_lookalike/dataloader_idx_0"): each_epoch,
        ("Validation", "train_lookalike/dataloader_idx_1"): each_epoch,
        ("Validation", "at_validation_end"): each_epoch,
    }
    assert found["Training", "val_lookalike"] == [(3, 0, 0.5), (7, 1, 1.5)]
    assert found["Training", "count"] == [(step, epoch, 7.0) for step, epoch in each_batch]


def test_validation_within_an_epoch_and_accumulated_batches_have_the_optimisers_step() -> None:
    logger, witness = prov4ml.ProvMLLogger(), Witness()
    trainer(logger, witness, max_epochs=1, accumulate_grad_batches=2, val_check_interval=2).fit(
        Digits(), digits(), digits()
    )

    found = recorded(logger.log_dir)
    assert found == told(witness)
    assert [row[:2] for row in found["Training", "loss"]] == [(0, 0), (1, 0)]
    assert [row[:2] for row in found["Validation", "val_loss"]] == [(0, 0), (1, 0)]


class OwnAxis(Digits):
    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        self.log_dict({"seen": float(batch_idx), "step": 100.0 * (batch_idx + 1)})
        return self.loss(batch)


def test_a_logged_step_is_the_step_and_the_epoch_is_still_the_trainers() -> None:
    logger = prov4ml.ProvMLLogger()
    trainer(logger, max_epochs=1).fit(OwnAxis(), digits(), digits())
    expected = [(100 * (i + 1), 0, float(i)) for i in range(BATCHES)]
    assert rows(logger.log_dir, "seen", "Training") == expected


def test_the_learning_rate_monitor_is_kept_with_all_its_rows() -> None:
    logger, witness = prov4ml.ProvMLLogger(), Witness()
    monitor = LearningRateMonitor("step")
    trainer(logger, witness, callbacks=[monitor]).fit(Digits(), digits(), digits())

    found = rows(logger.log_dir, "lr-SGD", "Training")
    assert [(step, value) for step, _, value in found] == [(i, 0.1) for i in range(8)]
    assert len(told_of(witness, "lr-SGD")) == 8


def told_of(witness: Witness, name: str) -> list[float]:
    return [metrics[name] for *_, metrics in witness.told if name in metrics]


class Configured(Digits):
    def __init__(self, config: dict[str, Any], learning_rate: float = 0.5) -> None:
        super().__init__(learning_rate)
        self.save_hyperparameters()
        self.config = config


def test_hyperparameters_of_module_and_data_are_flat_typed_and_kept_once() -> None:
    logger = prov4ml.ProvMLLogger()
    model = Configured({"layers": [1, 2], "drop": {"rate": 0.25, "on": True}, "name": "x"})
    data = DigitsData(batch_size=16)
    teacher = trainer(logger, max_epochs=1)
    teacher.fit(model, datamodule=data)
    teacher.test(model, datamodule=data, verbose=False)

    kept = prov4ml.list_parameters(logger.log_dir)
    expected = {
        "learning_rate": 0.5,
        "batch_size": 16,
        "config/layers": "[1, 2]",
        "config/drop/rate": 0.25,
        "config/drop/on": True,
        "config/name": "x",
    }
    assert {name: kept[name] for name in expected} == expected
    assert all(type(kept[name]) is type(value) for name, value in expected.items())
    assert not any("learning_rate" in name for name in kept if name != "learning_rate")


def test_fit_and_test_are_one_run_that_is_complete() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger)
    model = Digits()
    teacher.fit(model, digits(), digits())
    document = json.loads(Path(logger.log_dir, "prov_version_0.json").read_text())
    assert status(logger) == "completed"

    teacher.test(model, digits(), verbose=False)
    teacher.predict(model, digits())

    assert status(logger) == "completed"
    again = json.loads(Path(logger.log_dir, "prov_version_0.json").read_text())
    assert document["entity"].keys() < again["entity"].keys()
    assert len(prov4ml.list_runs_in_proj("prov")) == 1


def status(logger: prov4ml.ProvMLLogger) -> str:
    return str(json.loads(Path(logger.log_dir, "run.json").read_text())["status"])


def test_checkpoints_and_the_trainers_own_files_lie_inside_the_run() -> None:
    logger = prov4ml.ProvMLLogger(name="digits")
    teacher = trainer(logger, max_epochs=1, enable_checkpointing=True)
    teacher.fit(Digits(), digits(), digits())

    run = Path("prov/digits/version_0").absolute()
    assert teacher.checkpoint_callback is not None
    assert Path(teacher.checkpoint_callback.dirpath) == run / "checkpoints"
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["epoch=0-step=4.ckpt"]
    assert teacher.log_dir == str(run) == logger.log_dir
    assert not Path("checkpoints").exists()
    assert not Path("lightning_logs").exists()


class Speaking(Digits):
    """Makes the calls of the documents in its hooks, as their example does."""

    def on_train_epoch_end(self) -> None:
        epoch, context = self.current_epoch, prov4ml.Context.TRAINING
        prov4ml.log_metric("epoch", epoch, context, step=epoch)
        prov4ml.save_model_version(f"model_version_{epoch}", self, context, step=epoch)
        prov4ml.log_current_execution_time("train_epoch_time", context, epoch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        optimizer = super().configure_optimizers()
        prov4ml.log_param("optimizer", optimizer)
        return optimizer


def test_calls_before_in_and_after_the_training_go_to_its_run() -> None:
    prov4ml.log_param("dataset_transformation", "none")
    prov4ml.log_dataset("train_dataset", digits())
    logger = prov4ml.ProvMLLogger()
    model = Speaking()

    trainer(logger).fit(model, digits(), digits())
    prov4ml.log_model("model_version_final", model)
    prov4ml.end_run()

    kept = prov4ml.list_parameters(logger.log_dir)
    assert kept["dataset_transformation"] == "none"
    assert kept["optimizer"].startswith("SGD (")
    assert rows(logger.log_dir, "epoch", "Training")[1][::2] == (1, 1.0)
    assert len(rows(logger.log_dir, "train_epoch_time", "Training")) == 2
    assert prov4ml.list_entities(logger.log_dir, "provml:Dataset")
    names = {path.name for path in Path(logger.log_dir, "artifacts").rglob("*.pt")}
    assert len(names) == 3
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["prov"]
    assert status(logger) == "completed"


@pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`")
def test_a_training_that_goes_on_from_a_checkpoint_counts_on_in_its_own_run() -> None:
    first = prov4ml.ProvMLLogger()
    teacher = trainer(first, max_epochs=1, enable_checkpointing=True)
    teacher.fit(Digits(), digits(), digits())
    checkpoint = teacher.checkpoint_callback.best_model_path

    second = prov4ml.ProvMLLogger()
    trainer(second, max_epochs=2).fit(Digits(), digits(), digits(), ckpt_path=checkpoint)
    same = prov4ml.ProvMLLogger(version=0)
    trainer(same, max_epochs=2).fit(Digits(), digits(), digits(), ckpt_path=checkpoint)

    assert [row[0] for row in rows(second.log_dir, "loss")] == [4, 5, 6, 7]
    assert [row[:2] for row in rows(first.log_dir, "loss")] == [
        (0, 0), (1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (6, 1), (7, 1),
    ]  # fmt: skip
    assert rows(first.log_dir, "loss")[4:] == rows(second.log_dir, "loss")


class Clock(Callback):
    """Writes down when the Trainer's own stages began and ended."""

    def __init__(self) -> None:
        self.times: dict[str, datetime] = {}

    def _now(self, name: str) -> None:
        self.times[name] = datetime.now(UTC)

    def on_train_start(self, *_: Any) -> None:
        self._now("Training begins")

    def on_train_end(self, *_: Any) -> None:
        self._now("Training ends")

    def on_test_start(self, *_: Any) -> None:
        self._now("Testing begins")

    def on_test_end(self, *_: Any) -> None:
        time.sleep(0.05)
        self._now("Testing ends")


def test_a_context_lasts_as_long_as_its_stage() -> None:
    logger, clock = prov4ml.ProvMLLogger(), Clock()
    training = trainer(logger, callbacks=[clock])
    model = Digits()
    training.fit(model, digits(), digits())
    training.test(model, digits(), verbose=False)

    told = json.loads(Path(logger.log_dir, "prov_version_0.json").read_text())["activity"]
    spans = {
        name: tuple(
            datetime.fromisoformat(told[f"context/{name}"][f"prov:{end}Time"])
            for end in ("start", "end")
        )
        for name in ("Training", "Testing")
    }
    for name, (begin, end) in spans.items():
        assert begin <= clock.times[f"{name} begins"]
        assert end >= clock.times[f"{name} ends"]
    assert spans["Training"][1] <= spans["Testing"][0]


def test_a_stage_begins_when_the_trainer_begins_it_though_its_data_were_told_before() -> None:
    logger, clock = prov4ml.ProvMLLogger(), Clock()
    teacher = trainer(logger, callbacks=[clock])
    contexts = {"Training": prov4ml.Context.TRAINING, "Testing": prov4ml.Context.TESTING}
    for name, context in contexts.items():
        prov4ml.log_dataset(f"for {name}", digits(), context=context)
        prov4ml.log_param("threshold", 0.5, context)
    model = Digits()
    teacher.fit(model, digits(), digits())
    teacher.test(model, digits(), verbose=False)
    prov4ml.end_run()

    told = document(logger)
    used = {one["prov:entity"]: one for one in told["used"].values()}
    for name in contexts:
        begin = datetime.fromisoformat(told["activity"][f"context/{name}"]["prov:startTime"])
        assert abs((clock.times[f"{name} begins"] - begin).total_seconds()) < 0.1
        for entity in (f"dataset/{name}/for%20{name}", f"param/{name}/threshold"):
            assert datetime.fromisoformat(used[entity]["prov:time"]) == begin
    fitted = datetime.fromisoformat(told["activity"]["context/Training"]["prov:endTime"])
    tested = datetime.fromisoformat(told["activity"]["context/Testing"]["prov:startTime"])
    assert fitted <= tested
