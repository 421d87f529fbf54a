"""Models and data sets of torch as facts and files; torch is imported to write a file alone."""

from __future__ import annotations

import math
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, BinaryIO

from provml_lightning.capture.datasets import dataset_facts
from provml_lightning.capture.fingerprints import dataset_fingerprint
from provml_lightning.capture.foreign import attribute, class_name, is_a
from provml_lightning.capture.places import storage_error, written_whole
from provml_lightning.errors import RecordError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from provml_lightning.domain.values import Plain

__all__ = [
    "dataset_facts",
    "dataset_fingerprint",
    "described_dataset",
    "initial_seed",
    "model_facts",
    "model_layers",
    "save_state",
    "save_tensor",
]

_LAZY = "torch.nn.parameter.UninitializedTensorMixin"
_WRAPPERS = {
    "torch.nn.parallel.DistributedDataParallel": "module",
    "torch.nn.parallel.DataParallel": "module",
    "torch._dynamo.OptimizedModule": "_orig_mod",
}


def described_dataset(dataset: Any) -> dict[str, Plain]:
    """Return what is true of a data set and, where its content is in reach, a digest of that."""
    facts = dataset_facts(dataset)
    if (fingerprint := dataset_fingerprint(dataset)) is not None:
        facts["fingerprint"], facts["fingerprint_method"] = fingerprint
    return facts


def initial_seed() -> int:
    """Return the seed that torch's generator of the CPU began with [1]; nothing is drawn."""
    import torch

    return torch.initial_seed()


def model_facts(model: Any) -> dict[str, Plain]:
    """Return what is true of a model: its class and, where it has parameters, their numbers.

    Tied weights count once, every element with its true size. Of a model with uninitialised
    (lazy) parameters the numbers that depend on them are absent.

    Returns:
        ``class``; ``total_params`` and ``trainable_params`` [1]; ``parameter_bytes``,
        ``buffer_bytes`` and ``gradient_bytes`` (of all trainable parameters, in their type) [B];
        ``memory_mb``, parameters and buffers [MB, 10^6 bytes]; ``dtypes``, ``devices``;
        ``modules`` [1]; ``training``; ``uninitialized_params`` [1] where there are some.
    """
    facts: dict[str, Plain] = {"class": class_name(_unwrapped(model))}
    try:
        parameters = _tensors(model.parameters())
        buffers = _tensors(model.buffers()) if hasattr(model, "buffers") else []
        facts |= _sizes(parameters, buffers)
        facts |= _state(model, [*parameters, *buffers])
    except Exception:  # noqa: BLE001  anything may call itself a model; then its class is the fact
        return {"class": facts["class"]}
    return facts


def model_layers(model: Any) -> list[dict[str, Any]]:
    """Return one JSON-able dict per named module, the model itself first, under the name ``""``.

    Each has ``name``, ``type``, ``trainable``, ``description`` (what torch prints of it),
    ``settings`` (of torch's own layers, such as ``in_features``) and ``parameters``: those that
    the module holds itself, with ``name``, ``shape``, ``dtype``, ``count`` [1], ``trainable`` and,
    where an earlier module has the same weights, ``tied_to``. What a lazy layer does not know yet
    is None, as is a description that raises. Something without named modules gives an empty list.
    """
    if isinstance(model, type) or not callable(attribute(model, "named_modules")):
        return []
    seen: dict[int, str] = {}
    return [_layer(name, module, seen) for name, module in _unwrapped(model).named_modules()]


def save_state(model: Any, path: Path) -> None:
    """Write the ``state_dict`` of ``model`` to ``path``, whole or not at all.

    The keys are those of the model itself, also where it is wrapped by DistributedDataParallel,
    DataParallel or ``torch.compile``. Equal weights give equal bytes, whatever the file's name.
    A state of tensors, numbers, texts and containers loads with ``weights_only=True``.

    Raises:
        RecordError: ``model`` has no ``state_dict()``.
        StorageError: The file cannot be written.
    """
    try:
        with written_whole(path) as temporary:  # takes the name back too where there is no state
            state = _state_dict(model)
            with temporary.open("xb") as file:
                _save_state(state, class_name(model), file)
    except OSError as error:
        raise storage_error(path, "write the weights", error) from error


def _state_dict(model: Any) -> Any:
    if isinstance(model, type) or not callable(attribute(model, "state_dict")):
        raise RecordError(
            f"what is of class {class_name(model)} has no state_dict() to save; write it to a file"
            " with its own library and log that file with log_artifact(..., is_model=True)"
        )
    return _unwrapped(model).state_dict()


def _save_state(state: Any, name: str, file: BinaryIO) -> None:
    try:
        _save(state, file)
    except (TypeError, AttributeError, PicklingError) as error:
        raise RecordError(
            f"the state_dict() of class {name} holds something that torch cannot write"
            f" ({error}); keep tensors, numbers, texts and containers in it"
        ) from error


def save_tensor(tensor: Any, file: BinaryIO) -> None:
    """Write a tensor as a plain one: detached, on the CPU, without the rest of its storage.

    Raises:
        StorageError: The file cannot be written.
    """
    import torch

    plain = tensor.detach().cpu()
    if plain.layout is torch.strided and plain.untyped_storage().nbytes() > plain.nbytes:
        plain = plain.clone()  # a view would take the whole that it looks into along
    _save(plain, file)


def _save(value: Any, file: BinaryIO) -> None:
    import torch

    try:
        torch.save(value, file)
    except RuntimeError as error:  # what torch 2.13's C++ writer raises for a full disk
        raise StorageError(
            f"{file.name}: torch could not write it ({error}); check the free space of its disk"
        ) from error


def _unwrapped(model: Any) -> Any:
    for wrapper, inner in _WRAPPERS.items():
        if is_a(model, wrapper):
            return _unwrapped(getattr(model, inner))
    return model


def _tensors(found: Iterable[Any]) -> list[Any]:
    """Return each tensor once, in order, also where a foreign ``parameters()`` repeats them."""
    return list({id(tensor): tensor for tensor in found}.values())


def _sizes(parameters: list[Any], buffers: list[Any]) -> dict[str, Plain]:
    facts: dict[str, Plain] = {}
    lazy = sum(is_a(parameter, _LAZY) for parameter in parameters)
    if lazy:
        facts["uninitialized_params"] = lazy
    else:
        trainable = [parameter for parameter in parameters if parameter.requires_grad]
        facts["total_params"] = sum(parameter.numel() for parameter in parameters)
        facts["trainable_params"] = sum(parameter.numel() for parameter in trainable)
        facts["parameter_bytes"] = _bytes(parameters)
        facts["gradient_bytes"] = _bytes(trainable)
    if not any(is_a(buffer, _LAZY) for buffer in buffers):
        facts["buffer_bytes"] = _bytes(buffers)
        if not lazy:
            facts["memory_mb"] = (_bytes(parameters) + _bytes(buffers)) / 1e6
    return facts


def _bytes(tensors: Iterable[Any]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _state(model: Any, tensors: list[Any]) -> dict[str, Plain]:
    facts: dict[str, Plain] = {}
    if tensors:
        facts["dtypes"] = ", ".join(sorted({_dtype(tensor) for tensor in tensors}))
        facts["devices"] = ", ".join(sorted({str(tensor.device) for tensor in tensors}))
    if callable(attribute(model, "modules")):
        facts["modules"] = sum(1 for _ in _unwrapped(model).modules())
    training = attribute(model, "training")
    if isinstance(training, bool):
        facts["training"] = training
    return facts


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _layer(name: str, module: Any, seen: dict[int, str]) -> dict[str, Any]:
    parameters = [
        _parameter(name, own, tensor, seen)
        for own, tensor in module.named_parameters(recurse=False)
    ]
    return {
        "name": name,
        "type": class_name(module),
        "trainable": any(parameter["trainable"] for parameter in parameters),
        "description": _description(module),
        "settings": _settings(module),
        "parameters": parameters,
    }


def _description(module: Any) -> str | None:
    """Return what torch prints of a module; None where the user's own ``extra_repr`` raises."""
    try:
        return str(module.extra_repr())
    except Exception:  # noqa: BLE001  a foreign method may raise anything
        return None


def _parameter(module: str, name: str, tensor: Any, seen: dict[int, str]) -> dict[str, Any]:
    lazy = is_a(tensor, _LAZY)
    described = {
        "name": name,
        "shape": None if lazy else list(tensor.shape),
        "dtype": _dtype(tensor),
        "count": None if lazy else tensor.numel(),
        "trainable": tensor.requires_grad,
    }
    full = f"{module}.{name}".removeprefix(".")
    first = seen.setdefault(id(tensor), full)
    return described if first == full else {**described, "tied_to": first}


def _settings(module: Any) -> dict[str, Any]:
    if not type(module).__module__.startswith("torch.nn."):
        return {}
    return {
        name: _json_able(value)
        for name, value in sorted(vars(module).items())
        if not name.startswith("_") and name != "training" and _is_setting(value)
    }


def _is_setting(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_setting, value))
    return isinstance(value, (bool, int, float, str))


def _json_able(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_json_able(member) for member in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
