"""Tell the current run of its models and data sets."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provml_lightning.api.records import record_fact
from provml_lightning.capture.artifacts import free_name, write_value
from provml_lightning.capture.places import folder_for, next_version
from provml_lightning.domain.context import canonical_context
from provml_lightning.domain.names import folder_name
from provml_lightning.domain.records import Dataset, Model, ModelVersion, StoredFile
from provml_lightning.domain.scalars import to_step
from provml_lightning.runtime.shelf import keep

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["log_dataset", "log_model", "save_model_version"]


def log_model(
    model_name: str,
    model: Any,
    log_model_info: bool = True,
    log_model_layers: bool = False,
    is_input: bool = False,
    *,
    context: str | None = None,
    source: str | None = None,
) -> Path | None:
    """Keep a model: its weights, its numbers and, on request, its layers as a JSON file.

    Args:
        model_name: What to call it, any text.
        model: A ``torch.nn.Module``, or anything with a ``state_dict()``.
        log_model_info: Keep the number of parameters, their memory and types.
        log_model_layers: Keep name, type, shapes and types of every layer.
        is_input: The run used it; else the run made it.
        context: What it belongs to; None for the run itself.
        source: The library that it comes from.

    Returns:
        The file of its weights; None where none was written.

    Raises:
        RecordError: The model has no ``state_dict()``.
    """
    from provml_lightning.capture.torch_objects import model_facts, model_layers, save_state

    name = folder_name(str(model_name))
    described = Model(
        time=time.time_ns(),
        name=str(model_name),
        context=canonical_context(context),
        source=source,
        is_input=is_input,
        attributes=model_facts(model) if log_model_info else {},
    )

    def write(folder: Path) -> list[Path]:
        weights = free_name(folder_for(folder, name), f"{name}.pt")
        save_state(model, weights)
        if not log_model_layers:
            return [weights]
        return [weights, write_value(model_layers(model), weights.parent, f"{weights.stem}_layers")]

    def tell(files: Sequence[StoredFile]) -> Model:
        return replace(described, stored=files[0], layers=files[1] if log_model_layers else None)

    return keep(write, tell)


def save_model_version(
    model_name: str,
    model: Any,
    context: str | None = None,
    step: int | None = None,
    incremental: bool = True,
    is_input: bool = False,
    *,
    source: str | None = None,
) -> Path | None:
    """Keep the weights that a model has now, derived from the version before.

    Args:
        model_name: What to call the model, any text.
        model: A ``torch.nn.Module``, or anything with a ``state_dict()``.
        context: What it belongs to; None for the run itself.
        step: Whole number, or None [1].
        incremental: Keep every version in a file of its own; else the last one alone.
        is_input: The run used it; else the run made it.
        source: The library that it comes from.

    Returns:
        The file of the weights; None where none was written.

    Raises:
        RecordError: The model has no ``state_dict()``, or the step is not a whole number.
    """
    from provml_lightning.capture.torch_objects import save_state

    name = folder_name(str(model_name))

    when, number = time.time_ns(), to_step(model_name, step)

    def write(folder: Path) -> list[Path]:
        own = folder_for(folder, name)
        path = next_version(own, name) if incremental else own / f"{name}.pt"
        save_state(model, path)
        return [path]

    def tell(files: Sequence[StoredFile]) -> ModelVersion:
        return ModelVersion(
            time=when,
            name=str(model_name),
            stored=files[0],
            context=canonical_context(context),
            source=source,
            step=number,
            is_input=is_input,
        )

    return keep(write, tell)


def log_dataset(
    dataset_label: str,
    dataset: Any,
    log_dataset_info: bool = True,
    *,
    context: str | None = None,
    source: str | None = None,
) -> None:
    """Keep what a data set is: its true numbers and, where it can be had cheaply, a fingerprint.

    Nothing is drawn from it: neither samples nor random numbers.

    Args:
        dataset_label: What to call it, any text.
        dataset: A DataLoader, Subset, Dataset or IterableDataset of torch, or anything with a
            length.
        log_dataset_info: Keep samples, batches, batch size, workers, shuffling and fingerprint.
        context: The context that it was used in; None for the run itself.
        source: The library that it comes from.
    """
    from provml_lightning.capture.torch_objects import described_dataset

    record_fact(
        Dataset(
            time=time.time_ns(),
            label=str(dataset_label),
            context=canonical_context(context),
            source=source,
            attributes=described_dataset(dataset) if log_dataset_info else {},
        )
    )
