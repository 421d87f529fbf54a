"""What a Trainer and its objects report, in the words of the record."""

from __future__ import annotations

import copy
import hashlib
import json
from array import array
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from lightning.pytorch.callbacks import (
    Callback,
    EarlyStopping,
    LearningRateMonitor,
    ModelCheckpoint,
    ModelSummary,
    Timer,
)
from lightning.pytorch.utilities.model_summary import summarize
from torch.optim import lr_scheduler
from torch.utils.data import IterableDataset, Subset

from tests.stories import document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lightning.pytorch import LightningModule, Trainer

__all__ = ["Reader", "class_of", "of_callbacks", "of_checkpoints", "of_loaders", "of_model",
           "of_optimizers", "of_trainer", "parameters", "told"]  # fmt: skip

Facts = dict[str, Any]
Told = dict[tuple[str, str | None, str], Facts]  # by type, context and label

# What each class is built with, by the name of the attribute that has it: from the documentation
# of Lightning and torch.
_ARGUMENTS: dict[type, str] = {
    EarlyStopping: "monitor min_delta patience verbose mode strict check_finite stopping_threshold"
    " divergence_threshold _check_on_train_epoch_end log_rank_zero_only",
    LearningRateMonitor: "logging_interval log_momentum log_weight_decay",
    ModelCheckpoint: "dirpath filename monitor verbose save_last save_top_k save_on_exception"
    " save_weights_only mode auto_insert_metric_name _every_n_train_steps _train_time_interval"
    " _every_n_epochs _save_on_train_epoch_end _enable_version_counter",
    ModelSummary: "_max_depth _summarize_kwargs",
    Timer: "_duration _interval _verbose",
    lr_scheduler.CosineAnnealingLR: "T_max eta_min",
    lr_scheduler.MultiStepLR: "milestones gamma",
    lr_scheduler.ReduceLROnPlateau: "mode factor patience threshold threshold_mode cooldown eps",
    lr_scheduler.StepLR: "step_size gamma",
}
_TRAINER = (
    "precision", "num_devices", "num_nodes", "world_size", "max_epochs", "min_epochs", "max_steps",
    "min_steps", "accumulate_grad_batches", "gradient_clip_val", "gradient_clip_algorithm",
    "val_check_interval", "check_val_every_n_epoch", "num_sanity_val_steps", "overfit_batches",
    "limit_train_batches", "limit_val_batches", "limit_test_batches", "limit_predict_batches",
    "log_every_n_steps", "reload_dataloaders_every_n_epochs",
)  # fmt: skip
_SHUFFLES = {"RandomSampler": True, "SequentialSampler": False}  # of others nobody knows


class Reader(Callback):
    """Reads off a Trainer what it works with in a stage, before that changes."""

    def __init__(self) -> None:
        self.groups: list[list[Facts]] = []
        self.seed = 0
        self.loaders: dict[str, list[Any]] = {}

    def _read(self, context: str, found: Any) -> None:
        named = found if isinstance(found, dict) else {"": found}
        known = self.loaders.setdefault(context, [])
        for each in named.values():
            for one in each if isinstance(each, list) else [each]:
                known += [] if any(one is other for other in known) else [one]

    def on_train_start(self, trainer: Trainer, *_: Any) -> None:
        self.seed = torch.initial_seed()
        self.groups = [
            [
                {key: copy.copy(value) for key, value in group.items() if key != "params"}
                for group in optimizer.param_groups
            ]
            for optimizer in trainer.optimizers
        ]
        self._read("Training", trainer.train_dataloader)

    def on_validation_start(self, trainer: Trainer, *_: Any) -> None:
        stage = "Sanity checking" if trainer.sanity_checking else "Validation"
        self._read(stage, trainer.val_dataloaders)

    def on_test_start(self, trainer: Trainer, *_: Any) -> None:
        self._read("Testing", trainer.test_dataloaders)

    def on_predict_start(self, trainer: Trainer, *_: Any) -> None:
        self._read("Prediction", trainer.predict_dataloaders)


def told(logger: Any) -> Told:
    """Return all that a document says of a Trainer, once each, with the types of the values."""
    found: Told = {}
    for one in document(logger)["entity"].values():
        if one.pop("yprov:source", None) == "lightning":
            kinds = one.pop("prov:type")
            kind = kinds[-1] if isinstance(kinds, list) else kinds
            key = kind["$"], one.pop("yprov:context", None), one.pop("prov:label")
            assert key not in found
            found[key] = {name.partition(":")[2]: _plain(value) for name, value in one.items()}
    return found


def _plain(value: Any) -> tuple[type, Any]:
    if isinstance(value, dict):
        value = {"xsd:double": float, "xsd:long": int}[value["type"]](value["$"])
    return type(value), value


def _said(value: Any) -> tuple[type, Any]:
    """Return a value as PROV has it: a number, also of a tensor, or text."""
    if isinstance(value, Enum):
        return _said(value.value)
    if isinstance(value, torch.Tensor):
        return _said(value.item())
    value = value if isinstance(value, (bool, int, float)) else str(value)
    return type(value), value


def _facts(values: Facts) -> Facts:
    return {name: _said(value) for name, value in values.items()}


def class_of(one: Any) -> str:
    return f"{type(one).__module__}.{type(one).__qualname__}"


def parameters(values: Mapping[str, Any], context: str | None = None) -> Told:
    """Return what is told of settings; what is not set (None) is absent."""
    return {
        ("provml:HyperParameter", context, name): {"value": _said(value)}
        for name, value in values.items()
        if value is not None
    }


def of_trainer(teacher: Trainer) -> Told:
    values: Facts = {name: getattr(teacher, name) for name in _TRAINER}
    values["accelerator"] = type(teacher.accelerator).__name__
    values["strategy"] = type(teacher.strategy).__name__
    values["device"] = teacher.strategy.root_device
    return parameters({f"trainer/{name}": value for name, value in values.items()})


def _arguments(name: str, one: Any) -> Facts:
    names = _ARGUMENTS.get(type(one), "").split()
    return {name: class_of(one)} | {f"{name}/{key.strip('_')}": getattr(one, key) for key in names}


def of_callbacks(callbacks: Mapping[str, Callback]) -> Told:
    values: Facts = {}
    for name, one in callbacks.items():
        values |= _arguments(f"callback/{name}", one)
    return parameters(values)


def of_optimizers(teacher: Trainer, reader: Reader, *names: str) -> Told:
    """Return what is told of optimizers of two groups at most, and of their schedulers."""
    values: Facts = {}
    for name, optimizer, groups in zip(names, teacher.optimizers, reader.groups, strict=True):
        values[f"optimizer/{name}"] = class_of(optimizer)
        for prefix, group in zip((name, f"{name}/group_1"), groups, strict=False):
            values |= {f"optimizer/{prefix}/{key}": value for key, value in group.items()}
    for config in teacher.lr_scheduler_configs:
        name = f"scheduler/{type(config.scheduler).__name__}"
        values |= _arguments(name, config.scheduler)
        if isinstance(config.scheduler, lr_scheduler.ReduceLROnPlateau):
            values[f"{name}/min_lr"] = config.scheduler.min_lrs  # one for each group
        for key in ("interval", "frequency", "monitor", "name"):
            values[f"{name}/{key}"] = getattr(config, key)
    return parameters(values, "Training")


def of_loaders(reader: Reader, labels: Mapping[str, Iterable[str]]) -> Told:
    assert reader.loaders.keys() == labels.keys()
    return {
        ("provml:Dataset", context, label): _of_loader(loader)
        for context, loaders in reader.loaders.items()
        for label, loader in zip(labels[context], loaders, strict=True)
    }


def _of_loader(loader: Any) -> Facts:
    samples, batches = loader.dataset, loader.batch_sampler
    facts: Facts = {"class": class_of(loader), "dataset_class": class_of(samples)}
    facts |= {"batch_size": batches.batch_size, "drop_last": batches.drop_last}
    facts["num_workers"] = loader.num_workers
    if isinstance(samples, Subset):
        facts["subset_of"] = class_of(samples.dataset)
    if not isinstance(samples, IterableDataset):
        facts["sampler"] = sampler = type(batches.sampler).__name__
        facts |= {"total_samples": len(samples), "total_batches": len(loader)}
        facts |= {"shuffle": _SHUFFLES[sampler]} if sampler in _SHUFFLES else {}
        facts |= _fingerprint(samples)
    return _facts(facts)


def _fingerprint(samples: Any) -> Facts:
    """Return the digest of the names, types, shapes and bytes of tensors, and of which are used."""
    is_part, digest, names = isinstance(samples, Subset), hashlib.sha256(), []
    for number, each in enumerate((samples.dataset if is_part else samples).tensors):
        names.append(f"tensors[{number}]")
        digest.update(f"{names[-1]} {each.dtype} {list(each.shape)} {len(each)}\n".encode())
        digest.update(each.numpy().tobytes())
    if is_part:
        digest.update(f"indices list {len(samples)}\nq {len(samples)}\n".encode())
        digest.update(array("q", samples.indices).tobytes())
    method = f"sha256 of {', '.join(names)}{'; indices' if is_part else ''}"
    return {"fingerprint": digest.hexdigest(), "fingerprint_method": method}


def of_model(model: LightningModule, logger: Any) -> Told:
    """Return what is told of a module: its numbers, and its layers in a file."""
    name = type(model).__name__
    layers = Path(logger.log_dir, "artifacts", name, f"{name}_layers.json")
    listed = [
        (one["name"], one["type"], one["trainable"], one["description"], [
            tuple(each[key] for key in ("name", "shape", "dtype", "count", "trainable"))
            for each in one["parameters"]
        ])
        for one in json.loads(layers.read_text())
    ]  # fmt: skip
    assert listed == [
        (name, class_of(one), any(each.requires_grad for each in weights.values()),
         one.extra_repr(), [
            (key, list(each.shape), _dtype(each), each.numel(), each.requires_grad)
            for key, each in weights.items()
        ])
        for name, one in model.named_modules()
        for weights in [dict(one.named_parameters(recurse=False))]
    ]  # fmt: skip
    file = _of_file(layers, logger.log_dir, "application/json")
    key = "provml:ModelLayers", None, layers.name
    return {("provml:Model", None, name): _numbers(model), key: file}


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).partition(".")[2]


def _numbers(model: LightningModule) -> Facts:
    weights, buffers = list(model.parameters()), list(model.buffers())
    trained = [one for one in weights if one.requires_grad]
    tensors, summary = [*weights, *buffers], summarize(model)
    return _facts({
        "class": class_of(model),
        "total_params": summary.total_parameters,
        "trainable_params": summary.trainable_parameters,
        "parameter_bytes": sum(one.nbytes for one in weights),
        "gradient_bytes": sum(one.nbytes for one in trained),
        "buffer_bytes": sum(one.nbytes for one in buffers),
        "memory_mb": sum(one.nbytes for one in tensors) / 10**6,
        "dtypes": ", ".join(sorted(set(map(_dtype, tensors)))),
        "devices": ", ".join(sorted({str(one.device) for one in tensors})),
        "modules": len(list(model.modules())),
    })  # fmt: skip


def _of_file(path: Path, below: Any, media_type: str) -> Facts:
    content = path.read_bytes()
    return _facts({
        "identifier": path.relative_to(below), "format": media_type, "file_size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    })  # fmt: skip


def of_checkpoints(logger: Any, name: str, *keepers: ModelCheckpoint) -> Told:
    """Return what is told of checkpoints that were all kept, one of each keeper an epoch."""
    saved = [
        (torch.load(path, weights_only=False)["epoch"], place, path)
        for place, keeper in enumerate(keepers)
        for path in Path(str(keeper.dirpath)).glob("*.ckpt")
        if path.name.startswith(str(keeper.filename).partition("{")[0])
    ]
    wanted: Told = {}
    for number, (epoch, place, path) in enumerate(sorted(saved)):
        keeper = keepers[place]
        step = torch.load(path, weights_only=False)["global_step"]
        facts: Facts = {"model": name, "version": number, "epoch": epoch, "step": step}
        if keeper.monitor:
            score = keeper.best_k_models[str(path)]
            facts |= {"monitor": keeper.monitor, "mode": keeper.mode, "score": score}
        facts |= {"is_best": True} if str(path) == keeper.best_model_path else {}
        facts |= {"is_last": True} if number == len(saved) - 1 else {}
        key = "provml:ModelVersion", "Training", f"{name}_{number}"
        wanted[key] = _facts(facts) | _of_file(path, logger.log_dir, "application/x-pytorch")
    return wanted
