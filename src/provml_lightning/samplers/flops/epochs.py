"""The count of an epoch: the sum over its batches, of which as few as possible are looked at."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

from provml_lightning.errors import ProvMLError, SamplerReadError, SamplerUnavailableError
from provml_lightning.samplers.flops.counting import count_batch
from provml_lightning.samplers.flops.counts import Count, total
from provml_lightning.samplers.flops.keeping import same_chance
from provml_lightning.samplers.flops.modules import bare
from provml_lightning.samplers.flops.plans import Part, loaded, samples
from provml_lightning.samplers.flops.streams import Stream, stream_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Counter = Callable[[Any], Count]

__all__ = ["count_epoch"]

_FEW, _MANY = 8, 64


def count_epoch(model: Any, dataset: Any, engine: str = "auto") -> Count:
    """Return what a model's forward passes over a data set compute.

    The amount is exact where the shapes of all batches are known: tensors in memory, a list of
    batches, or so few batches in a fixed order that all are looked at. Else it is reckoned from
    up to 64 batches, and says ``sampled``. Random numbers and the loader stay as they are.

    Args:
        model: A module of torch.
        dataset: A DataLoader; a Dataset or Subset, whose samples are counted one by one; a list
            of batches; anything else that can be copied and iterated.
        engine: ``"auto"``, ``"meta"``, ``"real"`` or ``"thop"``.

    Raises:
        ConfigurationError: There is no such engine.
        SamplerUnavailableError: The model is no module of torch, the data set has no batches.
        SamplerReadError: The forward pass fails, or the data cannot be looked at.
    """
    module = bare(model)
    with same_chance():
        try:
            return _count(lambda batch: count_batch(module, batch, engine), dataset)
        except ProvMLError:
            raise
        except Exception as error:
            raise SamplerReadError(
                f"a {type(dataset).__qualname__} could not be looked at:"
                f" {type(error).__name__}: {error}"
            ) from error


def _count(count: Counter, dataset: Any) -> Count:
    stream = stream_of(dataset)
    counts = [_of_stream(count, stream)] if stream else _of_parts(count, _parts(dataset))
    if not counts:
        raise SamplerReadError("it has no batches")
    return total(counts)


def _parts(dataset: Any) -> Iterable[Part]:
    from torch.utils.data import DataLoader

    if isinstance(dataset, DataLoader):
        return loaded(dataset)
    if isinstance(dataset, (list, tuple)):
        return [Part(1, lambda _, batch=batch: batch) for batch in dataset]  # type: ignore[misc]
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return [samples(dataset)]
    raise SamplerUnavailableError(
        f"a {type(dataset).__qualname__} has neither batches nor samples; give a DataLoader, a"
        " Dataset or a list of batches"
    )


def _of_parts(count: Counter, parts: Iterable[Part]) -> list[Count]:
    return [_of_part(count, part) for part in parts if part.batches]


def _of_part(count: Counter, part: Part) -> Count:
    if part.alike:
        one = _of_batch(count, part, 0)
        return one.times(part.batches, sampled=one.by_values and part.batches > 1)
    found: list[Count] = []
    for most in (_FEW, _MANY):
        found = [_of_batch(count, part, place) for place in _spread(part.batches, most)]
        if len(found) == part.batches:
            whole = total(found)
            return replace(whole, sampled=not part.in_order)
        if len({each.amount for each in found}) == 1:
            break
    return total(found).times(Fraction(part.batches, len(found)), sampled=True)


def _of_batch(count: Counter, part: Part, place: int) -> Count:
    batch = part.draw(place)
    try:
        return count(batch)
    except SamplerReadError:
        if part.twins is None:
            raise
        # A batch of one is refused by a BatchNorm that trains.
        return count(part.twins(place)).times(Fraction(1, 2))


def _of_stream(count: Counter, stream: Stream) -> Count:
    batches = iter(stream.batches)
    found = [count(batch) for batch in islice(batches, _MANY)]
    if not found:
        raise SamplerReadError("it has no batches")
    if next(batches, stream) is stream:
        differ = len({each.amount for each in found[:-1]}) > 1
        return replace(total(found), sampled=differ or stream.is_shared)
    if stream.length is None:
        raise SamplerReadError(
            f"it has more than {_MANY} batches and no length; log the FLOPs of each batch with"
            " log_flops_per_batch"
        )
    return total(found).times(Fraction(stream.length, len(found)), sampled=True)


def _spread(number: int, most: int) -> list[int]:
    """Return up to ``most`` of ``number`` places, the first, the last and evenly between."""
    if number <= most:
        return list(range(number))
    return [place * (number - 1) // (most - 1) for place in range(most)]
