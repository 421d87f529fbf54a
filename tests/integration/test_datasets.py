from __future__ import annotations

from collections import UserDict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)

from provml_lightning.capture.datasets import dataset_facts

if TYPE_CHECKING:
    from collections.abc import Iterator


class Untouchable(Dataset[Any]):
    """A data set of 100 samples that must not be read."""

    transform = staticmethod(lambda sample: sample)

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> Any:
        pytest.fail("a sample was read")


class Stream(IterableDataset[Any]):
    """A data set that must not be iterated."""

    def __iter__(self) -> Iterator[Any]:
        pytest.fail("the data set was iterated")


class SizedStream(Stream):
    def __len__(self) -> int:
        return 100


class Hostile(Dataset[Any]):
    @property
    def transform(self) -> Any:
        raise RuntimeError

    def __len__(self) -> int:
        raise NotImplementedError


def _facts(dataset: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in dataset_facts(dataset).items()
        if name not in {"class", "dataset_class", "transform"}
    }


def test_a_loader_tells_samples_and_batches_as_they_are() -> None:
    assert dataset_facts(DataLoader(Untouchable(), batch_size=8, shuffle=True, num_workers=2)) == {
        "class": "torch.utils.data.dataloader.DataLoader",
        "dataset_class": f"{__name__}.Untouchable",
        "total_samples": 100,
        "total_batches": 13,
        "batch_size": 8,
        "num_workers": 2,
        "drop_last": False,
        "sampler": "RandomSampler",
        "shuffle": True,
        "transform": f"{__name__}.Untouchable.<lambda>",
    }


def test_a_subset_counts_its_own_samples() -> None:
    loader = DataLoader(Subset(Untouchable(), range(10)), batch_size=8)

    assert _facts(loader) == {
        "subset_of": f"{__name__}.Untouchable",
        "total_samples": 10,
        "total_batches": 2,
        "batch_size": 8,
        "num_workers": 0,
        "drop_last": False,
        "sampler": "SequentialSampler",
        "shuffle": False,
    }


def test_a_subset_of_a_subset_names_what_both_are_taken_from() -> None:
    part, _ = random_split(Subset(Untouchable(), range(10)), [4, 6])

    assert _facts(part) == {"subset_of": f"{__name__}.Untouchable", "total_samples": 4}


def test_dropping_the_last_batch_is_told() -> None:
    facts = _facts(DataLoader(Untouchable(), batch_size=8, drop_last=True))

    assert facts["total_batches"] == 12
    assert facts["drop_last"] is True


def test_a_loader_without_batches_has_no_batch_size() -> None:
    facts = _facts(DataLoader(Untouchable(), batch_size=None))

    assert "batch_size" not in facts
    assert "drop_last" not in facts
    assert facts["total_batches"] == 100
    assert facts["shuffle"] is False


def test_a_batch_sampler_tells_what_the_loader_does_not_know() -> None:
    batches = BatchSampler(RandomSampler(range(100)), batch_size=7, drop_last=True)

    assert _facts(DataLoader(Untouchable(), batch_sampler=batches)) == {
        "total_samples": 100,
        "total_batches": 14,
        "batch_size": 7,
        "num_workers": 0,
        "drop_last": True,
        "sampler": "RandomSampler",
        "shuffle": True,
    }


def test_a_batch_sampler_of_the_users_is_named() -> None:
    class Buckets(Sampler[list[int]]):
        def __iter__(self) -> Iterator[list[int]]:
            pytest.fail("the sampler was iterated")

    assert _facts(DataLoader(Untouchable(), batch_sampler=Buckets())) == {
        "total_samples": 100,
        "num_workers": 0,
        "sampler": "Buckets",
    }


@pytest.mark.parametrize(
    ("sampler", "name"),
    [
        (SubsetRandomSampler([1, 2]), "SubsetRandomSampler"),
        (WeightedRandomSampler([0.5, 0.5], 2), "WeightedRandomSampler"),
    ],
)
def test_other_samplers_are_named_and_shuffle_is_absent(sampler: Any, name: str) -> None:
    facts = _facts(DataLoader(Untouchable(), sampler=sampler))

    assert facts["sampler"] == name
    assert facts["total_batches"] == 2
    assert "shuffle" not in facts


def test_a_distributed_sampler_tells_its_part() -> None:
    sampler = DistributedSampler(Untouchable(), num_replicas=4, rank=1, shuffle=False)

    facts = _facts(DataLoader(Untouchable(), batch_size=5, sampler=sampler))

    assert facts["distributed_replicas"] == 4
    assert facts["distributed_rank"] == 1
    assert facts["shuffle"] is False
    assert facts["total_samples"] == 100
    assert facts["total_batches"] == 5


def test_a_stream_has_no_length_and_is_not_iterated() -> None:
    assert _facts(Stream()) == {}
    assert _facts(DataLoader(Stream(), batch_size=8)) == {
        "batch_size": 8,
        "num_workers": 0,
        "drop_last": False,
    }


def test_a_stream_with_a_length_is_counted_without_a_later_warning() -> None:
    class Three(IterableDataset[int]):
        def __len__(self) -> int:
            return 2

        def __iter__(self) -> Iterator[int]:
            return iter(range(3))

    assert _facts(DataLoader(SizedStream(), batch_size=8))["total_batches"] == 13
    assert _facts(DataLoader(SizedStream(), batch_size=8, drop_last=True))["total_batches"] == 12
    assert _facts(DataLoader(SizedStream(), batch_size=None))["total_batches"] == 100
    loader = DataLoader(Three(), batch_size=None)
    dataset_facts(loader)
    assert list(loader) == [0, 1, 2]  # torch warns here after its own len(loader)


@pytest.mark.parametrize(
    ("dataset", "total"),
    [
        (TensorDataset(torch.zeros(6, 2)), 6),
        (torch.zeros(6, 2), 6),
        (np.zeros((6, 2)), 6),
        ([1, 2], 2),
        (range(9), 9),
        ((), 0),
    ],
)
def test_anything_with_a_length_is_counted(dataset: Any, total: int) -> None:
    assert _facts(dataset) == {"total_samples": total}


@pytest.mark.parametrize(
    "dataset", [Hostile(), iter([1]), None, 3, "data/train", {"a": 1}, UserDict(), np.zeros(())]
)
def test_what_has_no_number_of_samples_is_its_class(dataset: Any) -> None:
    assert list(dataset_facts(dataset)) == ["class"]


def test_something_that_is_its_own_subset_ends() -> None:
    class Loop:
        indices = (0,)

        @property
        def dataset(self) -> Any:
            return self

    assert "total_samples" not in dataset_facts(Loop())
