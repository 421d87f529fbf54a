"""What each kind of item that itwinai's loggers know becomes in the record.

Everything but a metric is told by the library's own verbs; they go to the current run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import provml_lightning as prov4ml
from provml_lightning.capture.artifacts import free_name, write_value
from provml_lightning.capture.datasets import is_loader
from provml_lightning.capture.foreign import attribute, is_a
from provml_lightning.capture.torch_objects import model_facts, model_layers, save_state
from provml_lightning.domain.context import canonical_context
from provml_lightning.domain.names import folder_name
from provml_lightning.domain.records import Artifact, Model, Record, StoredFile
from provml_lightning.domain.scalars import to_step
from provml_lightning.errors import RecordError
from provml_lightning.loggers.pictures import picture
from provml_lightning.runtime.shelf import keep

__all__ = ["KINDS", "keep_value"]

# An item, its name, the context that it belongs to, the step.
Teller = Callable[[Any, str, str | None, int | None], object]


def keep_value(
    item: Any, name: str, context: str | None, step: int | None, category: str | None = None
) -> Path | None:
    """Write a value, a text too, to a file that fits it, as an artifact of the current run."""
    described = _artifact(name, context, step, category)
    return keep(
        lambda folder: [write_value(item, folder, folder_name(name))],
        lambda stored: replace(described, stored=stored[0]),
    )


def _artifact(
    name: str, context: str | None, step: int | None, category: str | None = None
) -> Artifact:
    return Artifact(
        time=time.time_ns(),
        name=name,
        context=canonical_context(context),
        step=to_step(name, step),
        category=category,
    )


def _parameter(item: Any, name: str, context: str | None, _: int | None) -> None:
    prov4ml.log_param(name, item, context)


def _file(item: Any, name: str, context: str | None, step: int | None) -> None:
    prov4ml.log_artifact(name, item, context, step)


def _figure(item: Any, name: str, context: str | None, step: int | None) -> None:
    plotly = is_a(item, "plotly.basedatatypes.BaseFigure")
    keep_value(json.loads(item.to_json()) if plotly else item, name, context, step, "Figure")


def _image(item: Any, name: str, context: str | None, step: int | None) -> None:
    keep_value(picture(item), name, context, step, "Image")


def _text(item: Any, name: str, context: str | None, step: int | None) -> None:
    keep_value(str(item), name, context, step, "Text")


def _dict(item: Any, name: str, context: str | None, step: int | None) -> None:
    keep_value(item, name, context, step, "Dict")


def _model(item: Any, name: str, context: str | None, step: int | None) -> None:
    prov4ml.save_model_version(name, item, context, step)


def _best_model(item: Any, name: str, context: str | None, _: int | None) -> None:
    prov4ml.log_model(name, item, context=context)


def _dataset(item: Any, name: str, context: str | None, _: int | None) -> None:
    prov4ml.log_dataset(name, item, context=context)


def _watch(item: Any, name: str, context: str | None, _: int | None) -> None:
    """Keep what a model is made of; its gradients are ``WeightDistributionTrackedModel``'s."""
    described = Model(
        time=time.time_ns(),
        name=name,
        context=canonical_context(context),
        attributes=model_facts(item),
    )
    stem = folder_name(name)
    keep(
        lambda folder: [write_value(model_layers(item), folder / stem, f"{stem}_layers")],
        lambda stored: replace(described, layers=stored[0]),
    )


def _torch(item: Any, name: str, context: str | None, step: int | None) -> None:
    if is_loader(item) or is_a(item, "torch.utils.data.dataset.Dataset"):
        prov4ml.log_dataset(name, item, context=context)
    elif callable(attribute(item, "state_dict")):
        _weights(item, name, context, step)
    elif isinstance(item, Mapping) and _is_state(item):
        _weights(_State(item), name, context, step)
    else:
        keep_value(item, name, context, step)


def _weights(item: Any, name: str, context: str | None, step: int | None) -> None:
    described = replace(
        _artifact(name, context, step), is_model=is_a(item, "torch.nn.modules.module.Module")
    )

    def write(folder: Path) -> list[Path]:
        path = free_name(folder, f"{folder_name(name)}.pt")
        save_state(item, path)
        return [path]

    def tell(stored: Sequence[StoredFile]) -> Record:
        return replace(described, stored=stored[0])

    keep(write, tell)


class _State:
    """A state that is there already, as that of a model."""

    def __init__(self, state: Mapping[Any, Any]) -> None:
        self._state = state

    def state_dict(self) -> Mapping[Any, Any]:
        return self._state


def _is_state(value: Any) -> bool:
    """Tell whether a value holds tensors, numbers, texts and containers alone."""
    if type(value) in {list, tuple}:
        return all(map(_is_state, value))
    if isinstance(value, Mapping):
        return all(map(_is_state, (*value.keys(), *value.values())))
    return value is None or type(value) in {bool, int, float, str} or is_a(value, "torch.Tensor")


def _flops_per_batch(item: Any, name: str, context: str | None, step: int | None) -> None:
    prov4ml.log_flops_per_batch(name, *_pair(item, name, "batch"), context=context, step=step)


def _flops_per_epoch(item: Any, name: str, context: str | None, step: int | None) -> None:
    prov4ml.log_flops_per_epoch(name, *_pair(item, name, "dataset"), context=context, step=step)


def _pair(item: Any, name: str, second: str) -> tuple[Any, Any]:
    if not isinstance(item, (tuple, list)) or len(item) != 2:  # noqa: PLR2004
        raise RecordError(f"{name!r}: FLOPs are counted of item=(model, {second})")
    return item[0], item[1]


def _system(_: Any, __: str, context: str | None, step: int | None) -> None:
    prov4ml.log_system_metrics(context, step)


def _carbon(_: Any, __: str, context: str | None, step: int | None) -> None:
    prov4ml.log_carbon_metrics(context, step)


def _execution_time(_: Any, name: str, context: str | None, step: int | None) -> None:
    prov4ml.log_current_execution_time(name, context, step)


KINDS: Mapping[str, Teller] = {
    "param": _parameter,
    "torch": _torch,
    "artifact": _file,
    "figure": _figure,
    "image": _image,
    "text": _text,
    "dict": _dict,
    "model": _model,
    "best_model": _best_model,
    "dataset": _dataset,
    "watch": _watch,
    "flops_pb": _flops_per_batch,
    "flops_pe": _flops_per_epoch,
    "system": _system,
    "carbon": _carbon,
    "execution_time": _execution_time,
}
