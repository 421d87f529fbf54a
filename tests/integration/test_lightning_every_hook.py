"""An exception in any hook of Lightning's is the user's own, and the run failed with it."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback, LightningDataModule, LightningModule
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.core.hooks import CheckpointHooks, DataHooks, ModelHooks

import prov4ml
from tests.training import Digits, DigitsData, trainer

STEPS = ("training_step", "validation_step", "test_step", "predict_step", "configure_optimizers")
# Lightning calls these after another error, not at all any more, and for a callback with a state.
UNCALLED = {"on_exception", "configure_sharded_model", "load_state_dict"}
# Before these no logger has heard of a training.
UNHEARD = {("data", "prepare_data"), ("module", "prepare_data")}


def hooks_of(*classes: type) -> set[str]:
    """Return the names of all hooks that classes of Lightning's have."""
    return {
        name
        for kind in classes
        for name, value in vars(kind).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


OWNERS: dict[str, set[str]] = {
    "module": hooks_of(ModelHooks, DataHooks, CheckpointHooks) | {*STEPS},
    "callback": hooks_of(Callback),
    "data": hooks_of(DataHooks),
}
HOOKS = [(owner, hook) for owner, hooks in OWNERS.items() for hook in sorted(hooks - UNCALLED)]


class OwnError(Exception):
    """An error that only the user knows."""


def fail(*_: Any, **__: Any) -> Any:
    raise OwnError("the user's own")


class Data(DigitsData):
    def predict_dataloader(self) -> Any:
        return self.train_dataloader()


class Plain(Digits):
    """A module whose loaders are its own where no data module has them."""

    def train_dataloader(self) -> Any:
        return Data().train_dataloader()

    val_dataloader = test_dataloader = predict_dataloader = train_dataloader


def everything(model: LightningModule, data: LightningDataModule | None, *more: Callback) -> str:
    """Use all of Lightning's entry points; return the run's folder."""
    logger = prov4ml.ProvMLLogger()
    keeper = ModelCheckpoint(monitor="val_loss")
    teacher = trainer(
        logger, enable_checkpointing=True, num_sanity_val_steps=1, callbacks=[*more, keeper]
    )
    teacher.fit(model, datamodule=data)
    teacher.validate(model, datamodule=data, verbose=False)
    teacher.test(model, datamodule=data, ckpt_path=keeper.best_model_path, verbose=False)
    teacher.predict(model, datamodule=data)
    return logger.log_dir


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


@pytest.mark.parametrize(("owner", "hook"), HOOKS)
def test_an_exception_in_any_hook_is_the_users_and_the_run_failed_with_it(
    owner: str, hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, callback = Plain(), Callback()
    data = Data() if owner == "data" else None
    monkeypatch.setattr({"module": model, "callback": callback, "data": data}[owner], hook, fail)
    with pytest.raises(OwnError, match="the user's own"):
        everything(model, data, callback)
    run = Path("prov/lightning_logs/version_0")
    if (owner, hook) in UNHEARD:
        assert not run.exists()
        return
    assert json.loads((run / "run.json").read_text())["status"] == "failed"
    assert f"{__name__}.OwnError" in (run / "prov_version_0.json").read_text()


def test_without_one_all_is_complete() -> None:
    run = everything(Plain(), None, Callback())
    assert json.loads(Path(run, "run.json").read_text())["status"] == "completed"
