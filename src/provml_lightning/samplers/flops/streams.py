"""Batches that can only be had one after the other, from a copy of where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from provml_lightning.samplers.flops.plans import copied

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Stream", "stream_of"]


@dataclass(frozen=True, slots=True)
class Stream:
    """Batches to be had one after the other.

    Attributes:
        batches: Them, from a copy.
        length: How many there are, None where that is not known [1].
        is_shared: Several workers make batches of it, so that the last ones are not known.
    """

    batches: Iterable[Any]
    length: int | None
    is_shared: bool = False


def stream_of(dataset: Any) -> Stream | None:
    """Return the batches of what can only be iterated, None where single ones can be asked for.

    Raises:
        SamplerReadError: It cannot be copied, so that a look would use it up.
    """
    from torch.utils.data import DataLoader, IterableDataset, default_collate

    if isinstance(dataset, DataLoader):
        return _loaded(dataset) if isinstance(dataset.dataset, IterableDataset) else None
    if isinstance(dataset, IterableDataset):
        own = copied(dataset, {})
        return Stream((default_collate([each]) for each in own), _length(dataset))
    if hasattr(dataset, "__getitem__") or not hasattr(dataset, "__iter__"):
        return None
    return Stream(copied(dataset, {}), _length(dataset))


def _loaded(loader: Any) -> Stream:
    items, size = _length(loader.dataset), loader.batch_size
    own = iter(copied(loader.dataset, {}))
    shared = loader.num_workers > 1
    if size is None:
        return Stream(map(loader.collate_fn, own), items, shared)
    # len(loader) would make torch warn of workers that give more samples than that.
    rounded = 0 if loader.drop_last else size - 1
    length = None if items is None else (items + rounded) // size
    return Stream(_batches(own, loader), length, shared)


def _batches(items: Iterator[Any], loader: Any) -> Iterator[Any]:
    while found := list(islice(items, loader.batch_size)):
        if len(found) < loader.batch_size and loader.drop_last:
            return
        yield loader.collate_fn(found)


def _length(source: Any) -> int | None:
    try:
        return len(source)
    except TypeError:
        return None
