"""The batches of an epoch, without a pass over them: how many of which size, and how to get one.

Samplers are copied before they are asked, and samples are read through a copy of the data set:
what the user's own loader will give is not touched.
"""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from provml_lightning.errors import SamplerReadError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["Part", "copied", "loaded", "samples"]

_MOST_LISTED = 1_000_000


@dataclass(frozen=True, slots=True)
class Part:
    """Some batches of an epoch, of equally many samples each.

    Attributes:
        batches: How many [1].
        draw: Returns a batch by its place among them.
        alike: They have the same shapes, for certain.
        in_order: What is drawn is what the epoch will have; else it is one like it.
        twins: Returns a sample's batch with the sample in it twice, where a batch is one sample.
    """

    batches: int
    draw: Callable[[int], Any]
    alike: bool = False
    in_order: bool = True
    twins: Callable[[int], Any] | None = None


def samples(dataset: Any) -> Part:
    """Return the samples of a data set, each as a batch of one."""
    from torch.utils.data import default_collate

    own = _read_only(dataset)
    return Part(
        len(dataset),
        lambda place: default_collate([own[place]]),
        alike=_is_even(dataset),
        twins=lambda place: default_collate([own[place]] * 2),
    )


def loaded(loader: Any) -> list[Part]:
    """Return the batches of a loader whose data set can be asked for any sample.

    Raises:
        SamplerReadError: Its sampler cannot be copied, so that asking would use it up.
    """
    from torch.utils.data import (
        BatchSampler,
        RandomSampler,
        SequentialSampler,
        default_collate,
    )

    own = _read_only(loader.dataset)
    alike = _is_even(loader.dataset) and loader.collate_fn is default_collate
    batches = loader.batch_sampler
    if batches is None:
        order = _Order(loader.sampler, len(own))
        one = lambda place: loader.collate_fn(own[order.at(place)])  # noqa: E731
        return [Part(len(loader.sampler), one, _is_even(loader.dataset), order.is_fixed)]

    def read(indices: Sequence[int]) -> Any:
        fetch = getattr(own, "__getitems__", None)
        found = fetch(list(indices)) if callable(fetch) else [own[index] for index in indices]
        return loader.collate_fn(found)

    plain = type(batches) is BatchSampler
    if plain and type(batches.sampler) in (SequentialSampler, RandomSampler):
        return list(_regular(batches, _Order(batches.sampler, len(own)), read, alike=alike))
    return list(_listed(loader, read, alike=alike))


class _Order:
    """Which sample is at a place: known of a sequential sampler, drawn like it of a random one."""

    def __init__(self, sampler: Any, samples: int) -> None:
        from torch.utils.data import SequentialSampler

        self.is_fixed = type(sampler) is SequentialSampler
        self._samples = samples

    def at(self, place: int) -> int:
        if self.is_fixed:
            return place
        # A chance of our own, the same at every call.
        return random.Random(place).randrange(self._samples)  # noqa: S311  no secret


def _regular(batches: Any, order: _Order, read: Any, *, alike: bool) -> Iterator[Part]:
    size = batches.batch_size
    full, rest = divmod(len(batches.sampler), size)

    def draw(place: int, count: int = size) -> Any:
        return read([order.at(place * size + each) for each in range(count)])

    if full:
        yield Part(full, draw, alike, order.is_fixed)
    if rest and not batches.drop_last:
        yield Part(1, lambda _: draw(full, rest), alike, order.is_fixed)


def _listed(loader: Any, read: Any, *, alike: bool) -> Iterator[Part]:
    batches = copied(loader.batch_sampler, {id(loader.dataset): loader.dataset})
    first, again = ([list(each) for each in islice(batches, _MOST_LISTED)] for _ in range(2))
    if len(first) == _MOST_LISTED:
        raise SamplerReadError(f"its batch sampler gives {_MOST_LISTED} batches and more")
    by_size: dict[int, list[list[int]]] = defaultdict(list)
    for each in first:
        by_size[len(each)].append(each)
    for group in by_size.values():
        yield Part(len(group), partial(_read_at, read, group), alike, first == again)


def _read_at(read: Callable[[list[int]], Any], group: list[list[int]], place: int) -> Any:
    return read(group[place])


def copied(source: Any, memo: dict[int, Any]) -> Any:
    """Return a deep copy.

    Raises:
        SamplerReadError: There can be none.
    """
    try:
        return copy.deepcopy(source, memo)
    except Exception as error:
        raise SamplerReadError(
            f"a {type(source).__qualname__} cannot be copied ({error}), so that looking into it"
            " would use it up; log the FLOPs of each batch with log_flops_per_batch"
        ) from error


def _read_only(dataset: Any) -> Any:
    """Return a shallow copy, so that files that reading opens do not stay in the user's own."""
    try:
        own = copy.copy(dataset)
        if hasattr(own, "indices") and hasattr(own, "dataset"):
            own.dataset = _read_only(own.dataset)
    except Exception:  # noqa: BLE001  what cannot be copied is read itself
        return dataset
    return own


def _is_even(dataset: Any) -> bool:
    """Return whether all samples have the same shapes, for certain."""
    from torch.utils.data import Subset, TensorDataset

    while type(dataset) is Subset:
        dataset = dataset.dataset
    return type(dataset) is TensorDataset
