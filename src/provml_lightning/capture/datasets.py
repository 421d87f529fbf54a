"""What is true of a data set, asked without iterating it and without importing torch."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

from provml_lightning.capture.foreign import attribute, class_name, is_a, length
from provml_lightning.domain.values import Plain, to_plain

__all__ = ["dataset_facts", "is_loader", "is_subset", "unwrapped"]

_SHUFFLES = {
    "torch.utils.data.RandomSampler": True,
    "torch.utils.data.SequentialSampler": False,
}
_DISTRIBUTED = "torch.utils.data.distributed.DistributedSampler"
_ITERABLE = "torch.utils.data.IterableDataset"
_NO_SAMPLES = (str, bytes, PathLike, Mapping)  # their length is not a number of samples
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def dataset_facts(dataset: Any) -> dict[str, Plain]:
    """Return what is true of a DataLoader, Subset, Dataset, sequence or iterable.

    Nothing is iterated and no sample is read; what cannot be told is absent.

    Returns:
        ``class`` of what was given, ``dataset_class`` of what a loader loads, ``subset_of`` of
        what a subset is taken from; ``total_samples``, ``total_batches`` and ``batch_size`` [1];
        ``num_workers`` [1], ``drop_last``; ``sampler``, the class of what chooses the samples;
        ``shuffle`` where that class tells it; ``distributed_replicas`` [1] and
        ``distributed_rank`` of a DistributedSampler; ``transform`` as text.
    """
    facts: dict[str, Plain] = {"class": class_name(dataset)}
    samples = dataset
    if is_loader(dataset):
        samples = dataset.dataset
        facts["dataset_class"] = class_name(samples)
        facts |= _loader_facts(dataset)
    *_, base = unwrapped(samples)
    if base is not samples:
        facts["subset_of"] = class_name(base)
    total = None if isinstance(samples, _NO_SAMPLES) else length(samples)
    if total is not None:
        facts["total_samples"] = total
    return facts | _transform(base)


def is_loader(value: Any) -> bool:
    """Return whether ``value`` loads batches from a data set, as a DataLoader does."""
    return all(attribute(value, name) is not None for name in ("dataset", "num_workers"))


def is_subset(value: Any) -> bool:
    """Return whether ``value`` is some rows of a data set, as a Subset is."""
    return all(attribute(value, name) is not None for name in ("dataset", "indices"))


def unwrapped(samples: Any) -> Iterator[Any]:
    """Yield ``samples`` and, below each subset, what it is taken from."""
    seen: set[int] = set()
    while id(samples) not in seen:
        yield samples
        seen.add(id(samples))
        if is_subset(samples):
            samples = samples.dataset


def _loader_facts(loader: Any) -> dict[str, Plain]:
    # With a batch_sampler of the user's the loader's own sampler, batch size and drop_last are
    # defaults that nothing reads (torch 2.13).
    batches = attribute(loader, "batch_sampler")
    own = attribute(loader, "batch_size") is None and batches is not None
    told = batches if own else loader
    facts = {
        "total_batches": _total_batches(loader),
        "num_workers": _whole(attribute(loader, "num_workers")),
        "batch_size": _whole(attribute(told, "batch_size")),
        "drop_last": attribute(told, "drop_last") if batches is not None else None,
    }
    known = {name: value for name, value in facts.items() if value is not None}
    if is_a(loader.dataset, _ITERABLE):
        return known
    return known | _sampler_facts(attribute(told, "sampler") or (batches if own else None))


def _total_batches(loader: Any) -> int | None:
    if not is_a(loader.dataset, _ITERABLE):
        return length(loader)
    # len() of such a loader makes torch 2.13 warn when workers give more samples than that.
    total = length(loader.dataset)
    size = attribute(loader, "batch_size")
    if total is None or size is None:
        return total
    return int(total // size if attribute(loader, "drop_last") else math.ceil(total / size))


def _sampler_facts(sampler: Any) -> dict[str, Plain]:
    if sampler is None:
        return {}
    facts: dict[str, Plain] = {"sampler": class_name(sampler).rpartition(".")[2]}
    for kind, shuffles in _SHUFFLES.items():
        if is_a(sampler, kind):
            facts["shuffle"] = shuffles
    if is_a(sampler, _DISTRIBUTED):
        facts["shuffle"] = bool(sampler.shuffle)
        facts["distributed_replicas"] = int(sampler.num_replicas)
        facts["distributed_rank"] = int(sampler.rank)
    return facts


def _transform(base: Any) -> dict[str, Plain]:
    transform = attribute(base, "transform")
    if transform is None or inspect.ismethod(transform):
        return {}
    text = to_plain(transform)
    # An address differs from process to process and tells nothing.
    return {"transform": _ADDRESS.sub("", text) if isinstance(text, str) else text}


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int) else None
