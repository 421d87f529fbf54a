"""An exception in any hook of Lightning's is the user's own, and the run failed with it."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback, LightningDataModule, LightningModule
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.core.hooks import CheckpointHooks, DataHooks, ModelHooks

import prov4ml
from provml_lightning.runtime.recovery import needs_recovery
from provml_lightning.storage.layout import RunLayout
from tests.conformance.prov.checker import complaints
from tests.conformance.prov.reading import parse
from tests.training import Digits, DigitsData, trainer

# The second fit saves into the folder of the first.
pytestmark = pytest.mark.filterwarnings("ignore:Checkpoint directory")
HERE = Path(__file__).parents[2]
STEPS = ("training_step", "validation_step", "test_step", "predict_step", "configure_optimizers")
# What a module may do in other ways than Lightning's.
OWN_WAYS = (
    "backward", "configure_callbacks", "configure_gradient_clipping", "lr_scheduler_step",
    "optimizer_step", "optimizer_zero_grad",
)  # fmt: skip
# Lightning calls these after another error, and not at all any more.
UNCALLED = {"on_exception", "configure_sharded_model"}
# Before these no logger has heard of a training.
UNHEARD = {("data", "prepare_data"), ("module", "prepare_data"), ("module", "configure_callbacks")}


def hooks_of(*classes: type) -> set[str]:
    """Return the names of all hooks that classes of Lightning's have."""
    return {
        name
        for kind in classes
        for name, value in vars(kind).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


OWNERS: dict[str, set[str]] = {
    "module": hooks_of(ModelHooks, DataHooks, CheckpointHooks) | {*STEPS, *OWN_WAYS},
    "callback": hooks_of(Callback),
    "data": hooks_of(DataHooks) | {"state_dict", "load_state_dict"},
}
HOOKS = [(owner, hook) for owner, hooks in OWNERS.items() for hook in sorted(hooks - UNCALLED)]


class OwnError(Exception):
    """An error that only the user knows."""


def fail(*_: Any, **__: Any) -> Any:
    raise OwnError("the user's own")


class Stateful(Callback):
    """A callback that has something to load again."""

    def state_dict(self) -> dict[str, Any]:
        return {"seen": 1}


class Data(DigitsData):
    def predict_dataloader(self) -> Any:
        return self.train_dataloader()

    def state_dict(self) -> dict[str, Any]:
        return {"read": 1}


class Plain(Digits):
    """A module with a scheduler, whose loaders are its own where no data module has them."""

    def configure_optimizers(self) -> Any:
        optimizer = super().configure_optimizers()
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]

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
    teacher.fit_loop.max_epochs = 3
    teacher.fit(model, datamodule=data, ckpt_path=keeper.best_model_path)
    return logger.log_dir


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


@pytest.mark.parametrize(("owner", "hook"), HOOKS)
def test_an_exception_in_any_hook_is_the_users_and_the_run_failed_with_it(
    owner: str, hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, callback = Plain(), Stateful()
    data = Data() if owner == "data" else None
    monkeypatch.setattr({"module": model, "callback": callback, "data": data}[owner], hook, fail)
    with pytest.raises(OwnError, match="the user's own"):
        everything(model, data, callback)
    run = Path("prov/lightning_logs/version_0")
    if (owner, hook) in UNHEARD:
        assert not run.exists()
        return
    assert_it_failed_as_a_whole(run, f"{__name__}.OwnError")


def assert_it_failed_as_a_whole(run: Path, error: str) -> None:
    assert json.loads((run / "run.json").read_text())["status"] == "failed"
    assert not needs_recovery(RunLayout(run))
    content = (run / "prov_version_0.json").read_bytes()
    assert complaints(parse(content)) == []
    told = json.loads(content)["activity"]["run/lightning_logs_0"]
    assert told["provml:status"] == "failed"
    assert told["provml:error_type"] == error
    assert told["provml:error_message"] == "the user's own"


def test_without_one_all_is_complete() -> None:
    run = everything(Plain(), None, Stateful())
    assert json.loads(Path(run, "run.json").read_text())["status"] == "completed"


LAST_WORDS = """
import sys
import prov4ml
from lightning.pytorch import Callback
from tests.training import Digits, DigitsData, trainer


class OwnError(Exception):
    pass


def fail(*_):
    raise OwnError("the user's own")


def fail_first(*_):
    raise ValueError("the first")


owner = {"callback": Callback(), "data": DigitsData()}
owner[sys.argv[1]].on_exception = fail
model = Digits()
model.on_train_epoch_end = fail_first
trainer(prov4ml.ProvMLLogger(), callbacks=[owner["callback"]]).fit(model, datamodule=owner["data"])
"""


@pytest.mark.parametrize("owner", ["callback", "data"])
def test_an_exception_while_one_is_told_is_what_the_script_and_its_run_end_with(owner: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", LAST_WORDS, owner]
    environment = {**os.environ, "PYTHONPATH": f"{HERE / 'src'}:{HERE}"}
    ended = subprocess.run(
        command, env=environment, check=False, capture_output=True, text=True, timeout=100
    )
    assert ended.returncode == 1
    assert ended.stderr.endswith("OwnError: the user's own\n")
    run = Path("prov/lightning_logs/version_0")
    assert_it_failed_as_a_whole(run, "__main__.OwnError")
    assert prov4ml.get_metric(run, "loss")["step"].tolist() == [0, 1, 2, 3]
