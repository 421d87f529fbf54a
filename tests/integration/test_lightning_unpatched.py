"""Nothing of Lightning's is patched: its classes, its functions and what a Trainer consists of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parents[2]

# A process of its own, which has Lightning work with a logger of its own before it imports ours.
PROGRAM = """
import json, sys
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from tests.training import Digits, digits, trainer

ABSENT = object()
LIBRARIES = ("lightning", "lightning_fabric", "lightning_utilities", "torch", "torchmetrics")


def is_theirs(module):
    return module.partition(".")[0] in LIBRARIES


def members():
    modules = [module for name, module in list(sys.modules.items()) if is_theirs(name)]
    found = {f"{module.__name__}": dict(vars(module)) for module in modules}
    for values in list(found.values()):
        for kind in values.values():
            if isinstance(kind, type) and is_theirs(kind.__module__):
                found[f"{kind.__module__}:{kind.__qualname__}"] = dict(vars(kind))
    return found


def changed(before, after):
    return sorted(
        f"{owner}.{name}"
        for owner, known in before.items()
        for name in known.keys() | after[owner].keys()
        if known.get(name, ABSENT) is not after[owner].get(name, ABSENT)
    )


def walk(one, path, found, seen):
    found[path] = f"{type(one).__module__}.{type(one).__qualname__}"
    if id(one) in seen:
        return
    seen[id(one)] = one
    if isinstance(one, dict):
        inner = {f"[{key!r}]": value for key, value in one.items()}
    elif isinstance(one, (list, tuple)):
        inner = {f"[{place}]": value for place, value in enumerate(one)}
    elif is_theirs(type(one).__module__) or isinstance(one, torch.nn.Module):
        inner = {f".{name}": value for name, value in getattr(one, "__dict__", {}).items()}
    else:
        return
    for name, value in inner.items():
        walk(value, path + name, found, seen)


def work(logger):
    keeper, model = ModelCheckpoint(filename="kept"), Digits()
    teacher = trainer(logger, callbacks=[keeper], enable_checkpointing=True)
    teacher.fit(model, digits(), digits())
    teacher.test(model, digits(), verbose=False)
    teacher.save_checkpoint("whole.ckpt")
    teacher.save_checkpoint("weights.ckpt", weights_only=True)
    found = {}
    walk(teacher.callbacks, "callbacks", found, {id(keeper): keeper})
    teacher.callbacks = [keeper]
    walk(teacher, "trainer", found, {id(logger): logger})
    return found


theirs = work(CSVLogger("csv"))
before = members()
import prov4ml

ours = work(prov4ml.ProvMLLogger())
told = {
    "watched": sorted(before),
    "changed": changed(before, members()),
    "differs": {
        path: [theirs.get(path), ours.get(path)]
        for path in theirs.keys() | ours.keys()
        if theirs.get(path) != ours.get(path)
    },
}
Trainer.fit = lambda *_: None
told["patched"] = changed(before, members())
print(json.dumps(told))
"""


LISTENER = "provml_lightning.loggers.lineage.watcher.Lineage"
KEEPER = "lightning.pytorch.callbacks.model_checkpoint.ModelCheckpoint"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        check=False,
        cwd=tmp_path_factory.mktemp("unpatched"),
        env={**os.environ, "PYTHONPATH": f"{HERE / 'src'}:{HERE}"},
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return read


def test_classes_and_functions_of_lightning_and_torch_are_what_they_were(
    told: dict[str, Any],
) -> None:
    assert told["changed"] == []
    assert told["patched"] == ["lightning.pytorch.trainer.trainer:Trainer.fit"]
    assert set(told["watched"]) >= {
        "lightning.pytorch.trainer.call",
        "lightning.pytorch.trainer.trainer:Trainer",
        "lightning.pytorch.trainer.connectors.callback_connector:_CallbackConnector",
        "lightning.pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector",
        "lightning.pytorch.trainer.connectors.data_connector:_DataConnector",
        "lightning.pytorch.trainer.connectors.logger_connector.logger_connector:_LoggerConnector",
        "lightning.pytorch.core.module:LightningModule",
        "lightning.pytorch.callbacks.callback:Callback",
        KEEPER.replace(".ModelCheckpoint", ":ModelCheckpoint"),
        "lightning.pytorch.loops.loop:_Loop",
        "lightning.pytorch.loops.fit_loop:_FitLoop",
        "lightning.pytorch.loops.prediction_loop:_PredictionLoop",
        "lightning.pytorch.strategies.strategy:Strategy",
        "lightning.pytorch.strategies.single_device:SingleDeviceStrategy",
        "lightning.pytorch.strategies.ddp:DDPStrategy",
        "lightning.pytorch.strategies.fsdp:FSDPStrategy",
        "lightning.fabric.plugins.io.torch_io:TorchCheckpointIO",
        "torch.optim.optimizer:Optimizer",
        "torch.serialization",
    }


def test_of_what_a_trainer_consists_only_three_places_know_of_the_logger(
    told: dict[str, Any],
) -> None:
    strategy = "trainer._accelerator_connector._strategy_flag"
    disk = "lightning.fabric.plugins.io.torch_io.TorchCheckpointIO"
    hearing = "provml_lightning.loggers.lineage.hearing"
    csv, ours = "lightning.pytorch.loggers.csv_logs", "provml_lightning.loggers.provml"
    assert told["differs"] == {
        "trainer._loggers[0]": [f"{csv}.CSVLogger", f"{ours}.ProvMLLogger"],
        "callbacks[0]": [KEEPER, LISTENER],
        "callbacks[1]": [None, KEEPER],
        "trainer.predict_loop._provml_ear": [None, f"{hearing}._Ear"],
        f"{strategy}._checkpoint_io": [disk, f"{hearing}.ListeningIO"],
    }
