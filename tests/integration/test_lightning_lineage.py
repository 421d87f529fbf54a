"""What the Trainer knows is in the record without another line: compared with what it reports."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import seed_everything
from lightning.pytorch.callbacks import (
    Callback,
    EarlyStopping,
    LearningRateMonitor,
    ModelCheckpoint,
)
from lightning.pytorch.utilities.model_summary import summarize
from torch import nn

import prov4ml
from provml_lightning.errors import ConfigurationError
from tests.training import BATCHES, Digits, DigitsData, digits, trainer

PARTS = (
    "stages", "epochs", "trainer", "seeds", "optimizers", "callbacks", "data", "model",
    "checkpoints",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


def document(logger: Any) -> dict[str, Any]:
    directory = Path(logger.log_dir)
    read: dict[str, Any] = json.loads((directory / f"prov_{directory.name}.json").read_text())
    return read


def parameters(logger: Any, context: str | None = None) -> dict[str, Any]:
    """Return what the Trainer set, of the run or of a context, by name."""
    return {
        one["prov:label"]: plain(one["prov:value"])
        for one in document(logger)["entity"].values()
        if one["prov:type"] == kind("HyperParameter")
        and one.get("yprov:source") == "lightning"
        and one.get("yprov:context") == context
    }


def plain(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return float(value["$"]) if value["type"] == "xsd:double" else int(value["$"])


def kind(name: str) -> dict[str, str]:
    return {"$": f"provml:{name}", "type": "prov:QUALIFIED_NAME"}


def of_kind(logger: Any, name: str) -> dict[str, dict[str, Any]]:
    entities = document(logger)["entity"].items()
    return {key: one for key, one in entities if one["prov:type"] == kind(name)}


def test_the_seeds_are_those_that_were_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PL_GLOBAL_SEED", "PL_SEED_WORKERS"):
        monkeypatch.setenv(variable, "")
    seed_everything(1234, workers=True, verbose=False)
    logger = prov4ml.ProvMLLogger()
    trainer(logger, max_epochs=1).fit(Digits(), digits(), digits())
    told = parameters(logger)
    assert {name: told[name] for name in told if name.startswith("seed/")} == {
        "seed/torch": 1234,
        "seed/global": 1234,
        "seed/workers": 1,
    }


class Guarded(Callback):
    """Keeps a setting that is secret, one that asks to be left alone, and a state."""

    def __init__(self, api_token: str, size: int, *, deep: Any = None) -> None:
        self.api_token = api_token
        self._size = size
        self.deep = deep
        self.counted = 0

    @property
    def size(self) -> int:
        raise RuntimeError("nobody may ask")


def test_callbacks_are_told_with_the_settings_they_were_built_with_and_no_secrets() -> None:
    logger = prov4ml.ProvMLLogger()
    callbacks = [
        EarlyStopping("val_loss", patience=9),
        ModelCheckpoint(monitor="val_loss", save_top_k=2, every_n_epochs=1),
        ModelCheckpoint(filename="second", save_top_k=-1),
        LearningRateMonitor("step"),
        Guarded("s3cr3t-value", 3, deep=object()),
    ]
    trainer(logger, callbacks=callbacks, enable_checkpointing=True).fit(
        Digits(), digits(), digits()
    )
    told = parameters(logger)
    expected = {
        "callback/EarlyStopping": "lightning.pytorch.callbacks.early_stopping.EarlyStopping",
        "callback/EarlyStopping/patience": 9,
        "callback/EarlyStopping/mode": "min",
        "callback/ModelCheckpoint/monitor": "val_loss",
        "callback/ModelCheckpoint/save_top_k": 2,
        "callback/ModelCheckpoint/every_n_epochs": 1,
        "callback/ModelCheckpoint.2/filename": "second",
        "callback/ModelCheckpoint.2/save_top_k": -1,
        "callback/LearningRateMonitor/logging_interval": "step",
        "callback/Guarded/api_token": "***",
        "callback/Guarded/size": 3,
    }
    assert {name: told.get(name) for name in expected} == expected
    assert not any("Lineage" in name for name in told)
    assert not {"callback/Guarded/deep", "callback/Guarded/counted"} & told.keys()
    assert "s3cr3t-value" not in json.dumps(document(logger))


class OfNamedData(Digits):
    def training_step(self, batch: Any) -> torch.Tensor:
        return super().training_step(batch["a"])

    def predict_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> torch.Tensor:  # noqa: ARG002
        return super().predict_step(batch)


def test_the_data_of_each_stage_are_inputs_of_that_stage() -> None:
    logger = prov4ml.ProvMLLogger()
    teacher = trainer(logger, max_epochs=1, num_sanity_val_steps=1)
    model = OfNamedData()
    teacher.fit(model, {"a": digits(shuffle=True)}, digits())
    teacher.validate(model, digits(), verbose=False)
    teacher.test(model, digits(), verbose=False)
    teacher.predict(model, [digits(), digits()])

    used = {(one["prov:activity"], one["prov:entity"]) for one in document(logger)["used"].values()}
    data = {
        (one["yprov:context"], one["prov:label"]): one
        for key, one in of_kind(logger, "Dataset").items()
        if (f"context/{one['yprov:context'].replace(' ', '%20')}", key) in used
    }
    assert data.keys() == {
        ("Sanity checking", "val"), ("Training", "train/a"), ("Validation", "val"),
        ("Testing", "test"), ("Prediction", "predict/0"), ("Prediction", "predict/1"),
    }  # fmt: skip
    train = data["Training", "train/a"]
    loader = digits(shuffle=True)
    assert train["provml:batch_size"] == loader.batch_size == 32 // BATCHES
    assert train["provml:total_samples"] == len(loader.dataset) == 32
    assert train["provml:total_batches"] == len(loader) == BATCHES
    assert train["provml:shuffle"] is True
    digests = {one["provml:fingerprint"] for one in data.values()}
    assert len(digests) == 1  # all are the same digits


def test_the_data_module_is_named_by_the_data_that_come_from_it() -> None:
    logger = prov4ml.ProvMLLogger()
    trainer(logger, max_epochs=1).fit(Digits(), datamodule=DigitsData(batch_size=16))
    found = of_kind(logger, "Dataset")
    assert {one["provml:data_module"] for one in found.values()} == {"tests.training.DigitsData"}
    assert {one["provml:batch_size"] for one in found.values()} == {16}


class Frozen(Digits):
    def __init__(self) -> None:
        super().__init__()
        self.extra = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        for parameter in self.extra.parameters():
            parameter.requires_grad = False


def test_the_model_is_told_once_with_its_layers_and_lightnings_own_counts() -> None:
    logger, model = prov4ml.ProvMLLogger(), Frozen()
    teacher = trainer(logger, max_epochs=1)
    teacher.fit(model, digits(), digits())
    teacher.test(model, digits(), verbose=False)

    (entity,) = (one for one in of_kind(logger, "Model").values())
    summary = summarize(model)
    assert entity["prov:label"] == "Frozen"
    assert entity["provml:total_params"] == summary.total_parameters == 650 + 8 + 4
    assert entity["provml:trainable_params"] == summary.trainable_parameters == 650
    (layers,) = of_kind(logger, "ModelLayers").values()
    listed = json.loads(Path(logger.log_dir, layers["dcterms:identifier"]).read_text())
    assert [one["name"] for one in listed] == [name for name, _ in model.named_modules()]


def test_a_model_that_changes_between_trainings_is_a_revision() -> None:
    logger, model = prov4ml.ProvMLLogger(), Frozen()
    trainer(logger, max_epochs=1).fit(model, digits(), digits())
    for parameter in model.extra.parameters():
        parameter.requires_grad = True
    trainer(logger, max_epochs=1).fit(model, digits(), digits())
    counts = [one["provml:trainable_params"] for one in of_kind(logger, "Model").values()]
    assert counts == [650, 662]


class Wordless(Digits):
    """Logs nothing, so that all that is in the record comes from the Trainer."""

    def training_step(self, batch: Any) -> torch.Tensor:
        return self.loss(batch)

    def validation_step(self, batch: Any) -> None:
        self.loss(batch)

    def on_train_end(self) -> None:
        self.ended = datetime.now(UTC)


def kinds(logger: Any, model: Wordless) -> set[str]:
    """Return the parts that a record holds."""
    told = document(logger)
    names = {one["prov:label"] for one in told["entity"].values()}
    first = {name.partition("/")[0] for name in names if "/" in name}
    training = told["activity"].get("context/Training", {"prov:endTime": "0001-01-01T00:00:00Z"})
    holds = {
        # Without it, Training is as long as what happens in it, all before its end is told.
        "stages": datetime.fromisoformat(training["prov:endTime"]) > model.ended,
        "epochs": "epoch_time" in names,
        "trainer": "trainer" in first,
        "seeds": "seed" in first,
        "optimizers": "optimizer" in first,
        "callbacks": "callback" in first,
        "data": bool(of_kind(logger, "Dataset")),
        "model": bool(of_kind(logger, "Model")),
        "checkpoints": any("provml:version" in one for one in told["entity"].values()),
    }
    return {part for part, is_there in holds.items() if is_there}


@pytest.mark.parametrize("part", PARTS)
def test_each_part_can_be_left_out(part: str) -> None:
    logger = prov4ml.ProvMLLogger(lineage=[other for other in PARTS if other != part])
    model = Wordless()
    trainer(logger, max_epochs=1, enable_checkpointing=True).fit(model, digits(), digits())
    assert kinds(logger, model) == set(PARTS) - {part}


def test_without_lineage_nothing_of_it_is_told_and_no_callback_is_added() -> None:
    logger, model = prov4ml.ProvMLLogger(lineage=False), Wordless()
    teacher = trainer(logger, max_epochs=1, enable_checkpointing=True)
    before = list(teacher.callbacks)
    teacher.fit(model, digits(), digits())
    assert kinds(logger, model) == set()
    assert teacher.callbacks == before


@pytest.mark.parametrize("wrong", ["stages", ["stages", "weights"], 3, None, [1]])
def test_a_part_that_is_not_known_is_refused_when_the_logger_is_built(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"lineage=.*'stages', 'epochs', 'trainer'"):
        prov4ml.ProvMLLogger(lineage=wrong)


def test_all_metrics_of_a_user_stay_his_own() -> None:
    class Named(Digits):
        def training_step(self, batch: Any) -> torch.Tensor:
            self.log("epoch_time", 5.0, on_step=False, on_epoch=True)
            return self.loss(batch)

    logger = prov4ml.ProvMLLogger()
    trainer(logger, max_epochs=1).fit(Named(), digits(), digits())
    listed = prov4ml.list_metrics(logger.log_dir, "Training")
    assert sorted(listed["source"].fillna("")) == ["", "lightning"]


def test_a_training_of_no_epoch_has_no_stage_of_training() -> None:
    logger = prov4ml.ProvMLLogger()
    trainer(logger, limit_train_batches=0).fit(Digits(), digits(), digits())
    assert "context/Training" not in document(logger)["activity"]
