"""The FLOPs of an epoch are the sum over its batches; what was not looked at is said."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Sampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)

from provml_lightning.errors import SamplerReadError, SamplerUnavailableError
from provml_lightning.samplers.flops import count_epoch
from tests.training import Digits, digits

if TYPE_CHECKING:
    from collections.abc import Iterator

# A layer of 6×5 on every step of every sample.
STEP = 2 * 6 * 5


class Steps(nn.Module):
    """A layer on each step of padded sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


class Sequences(Dataset[torch.Tensor]):
    """Sequences of given lengths; it counts what is read, and draws chance as transforms do."""

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths
        self.read: list[int] = []
        self.file: object = None

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> torch.Tensor:
        self.read.append(index)
        self.file = self.file or object()
        random.random()  # noqa: S311
        return torch.rand(self.lengths[index], 6)


class Stream(IterableDataset[torch.Tensor]):
    """A stream of equal samples; with a source of its own it can be read once."""

    def __init__(self, number: int, length: int | None = None) -> None:
        self.number = number
        self.length = length

    def __iter__(self) -> Iterator[torch.Tensor]:
        return (torch.ones(6) for _ in range(self.number))

    def __len__(self) -> int:
        if self.length is None:
            raise TypeError("no length")
        return self.length


def padded(samples: list[torch.Tensor]) -> torch.Tensor:
    return pad_sequence(samples, batch_first=True)


def tensors(number: int) -> TensorDataset:
    return TensorDataset(torch.ones(number, 6), torch.ones(number))


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("drop_last", "samples"), [(False, 1000), (True, 992)])
def test_the_last_short_batch_counts_as_what_it_is(
    shuffle: bool, drop_last: bool, samples: int
) -> None:
    loader = DataLoader(tensors(1000), batch_size=32, shuffle=shuffle, drop_last=drop_last)
    count = count_epoch(Steps(), loader)
    assert (count.amount, count.source) == (samples * STEP, "flops.meta")


def test_real_images_in_a_lightning_module_are_counted() -> None:
    class Net(Digits):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return self.layer(images)

    count = count_epoch(Net(), digits(shuffle=True))
    assert (count.amount, count.source) == (32 * 2 * 64 * 10, "flops.meta")


def test_samplers_decide_how_many_samples_there_are() -> None:
    weighted = WeightedRandomSampler([1.0] * 100, num_samples=33)
    loader = DataLoader(tensors(100), batch_size=8, sampler=weighted)
    assert count_epoch(Steps(), loader).amount == 33 * STEP
    single = DataLoader(tensors(100), batch_size=None)
    assert count_epoch(Steps(), single).amount == 100 * STEP


def test_a_data_set_or_subset_is_counted_sample_by_sample() -> None:
    for samples, number in ((tensors(100), 100), (Subset(tensors(100), range(7)), 7)):
        count = count_epoch(Steps(), samples)
        assert (count.amount, count.source) == (number * STEP, "flops.meta")


def test_a_norm_that_refuses_a_batch_of_one_is_counted_with_two() -> None:
    model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5))
    assert count_epoch(model, tensors(100)).amount == 100 * STEP


def test_a_list_of_batches_is_counted_batch_by_batch() -> None:
    batches = [torch.ones(size, 6) for size in range(1, 101)]
    count = count_epoch(Steps(), batches)
    assert (count.amount, count.source) == (5050 * STEP, "flops.meta")


def test_few_batches_of_any_length_in_order_are_exact() -> None:
    lengths = [3, 5, 2, 8, 4, 4, 9, 1, 7]
    loader = DataLoader(Sequences(lengths), batch_size=2, collate_fn=padded)
    count = count_epoch(Steps(), loader)
    # Batches of two, padded to the longer one, and the last sample alone.
    assert (count.amount, count.source) == ((2 * (5 + 8 + 4 + 9) + 7) * STEP, "flops.meta")


def test_many_lengths_in_order_are_sampled_evenly_and_say_so() -> None:
    data = Sequences([1 + index % 10 for index in range(4000)])
    count = count_epoch(Steps(), DataLoader(data, batch_size=1))
    assert count.source == "flops.meta.sampled"
    assert float(count.amount) == pytest.approx(4000 * 5.5 * STEP, rel=0.1)
    assert len(set(data.read)) <= 64 + 8


def test_equal_samples_of_a_data_set_that_promises_nothing_are_sampled() -> None:
    data = Sequences([4] * 1000)
    count = count_epoch(Steps(), DataLoader(data, batch_size=10, shuffle=True))
    assert (count.amount, count.source) == (1000 * 4 * STEP, "flops.meta.sampled")
    assert len(data.read) == 8 * 10


class Buckets(Sampler[list[int]]):
    """Batches of samples of one length, each time in the same order or another."""

    def __init__(self, data: Sequences, *, shuffle: bool) -> None:
        self.data = data
        self.shuffle = shuffle
        self.chance = random.Random(1)  # noqa: S311
        self.passes = 0

    def __iter__(self) -> Iterator[list[int]]:
        self.passes += 1
        order = sorted(range(len(self.data)), key=lambda index: self.data.lengths[index])
        batches = [order[start : start + 4] for start in range(0, len(order), 4)]
        if self.shuffle:
            self.chance.shuffle(batches)
        return iter(batches)

    def __len__(self) -> int:
        return (len(self.data) + 3) // 4


def test_buckets_of_lengths_are_exact_in_a_fixed_order_and_are_not_used_up() -> None:
    data = Sequences([2, 9, 2, 9, 2, 9, 2, 9, 5, 5])
    buckets = Buckets(data, shuffle=False)
    loader = DataLoader(data, batch_sampler=buckets, collate_fn=padded)
    count = count_epoch(Steps(), loader)
    # 2 2 2 2 | 5 5 9 9 | 9 9
    assert (count.amount, count.source) == ((4 * 2 + 4 * 9 + 2 * 9) * STEP, "flops.meta")
    shuffled = Buckets(data, shuffle=True)
    count = count_epoch(Steps(), DataLoader(data, batch_sampler=shuffled, collate_fn=padded))
    assert count.source == "flops.meta.sampled"
    assert (buckets.passes, shuffled.passes) == (0, 0)
    assert shuffled.chance.random() == random.Random(1).random()  # noqa: S311


def test_what_the_loader_gives_next_and_all_chance_are_as_if_nothing_was_counted() -> None:
    model = Steps()

    def next_epoch(*, counted: bool) -> list[Any]:
        torch.manual_seed(7)
        random.seed(7)
        own = torch.Generator().manual_seed(3)
        loaders = [
            DataLoader(Sequences([4] * 6), batch_size=2, shuffle=True, generator=own),
            DataLoader(Sequences([4] * 6), batch_size=2, shuffle=True),
        ]
        if counted:
            for loader in loaders:
                count_epoch(model, loader)
        given = [batch.tolist() for loader in loaders for batch in loader]
        return [given, random.random(), torch.rand(1).item()]  # noqa: S311

    assert next_epoch(counted=True) == next_epoch(counted=False)


def test_persistent_workers_are_not_started() -> None:
    loader = DataLoader(tensors(8), batch_size=2, num_workers=2, persistent_workers=True)
    assert count_epoch(Steps(), loader).amount == 8 * STEP
    assert loader._iterator is None  # noqa: SLF001  where torch keeps its workers


def test_what_reading_opens_does_not_stay_in_the_data_set() -> None:
    data = Sequences([4] * 4)
    count_epoch(Steps(), DataLoader(Subset(data, range(2)), batch_size=2))
    assert data.file is None


def test_streams_are_counted_to_their_end_or_by_their_length() -> None:
    whole = count_epoch(Steps(), DataLoader(Stream(50), batch_size=4))
    assert (whole.amount, whole.source) == (50 * STEP, "flops.meta")
    long = count_epoch(Steps(), DataLoader(Stream(400, length=400), batch_size=4))
    assert (long.amount, long.source) == (400 * STEP, "flops.meta.sampled")
    with pytest.raises(SamplerReadError, match="no length"):
        count_epoch(Steps(), DataLoader(Stream(400), batch_size=4))


def test_a_stream_that_can_be_read_once_is_not_read() -> None:
    once = (torch.ones(2, 6) for _ in range(3))
    with pytest.raises(SamplerReadError, match="would use it up"):
        count_epoch(Steps(), once)
    assert len(list(once)) == 3


def test_samples_that_do_not_collate_and_empty_sets_say_why() -> None:
    class Objects(Sequences):
        def __getitem__(self, index: int) -> Any:
            return object()

    with pytest.raises(SamplerReadError, match="default_collate"):
        count_epoch(Steps(), Objects([1]))
    with pytest.raises(SamplerReadError, match="no batches"):
        count_epoch(Steps(), [])
    with pytest.raises(SamplerUnavailableError, match="neither batches nor samples"):
        count_epoch(Steps(), 3)


def test_an_epoch_by_thop_is_in_macs() -> None:
    count = count_epoch(Steps(), DataLoader(tensors(10), batch_size=4), "thop")
    assert (count.amount, count.unit, count.source) == (10 * 6 * 5, "MAC", "thop")


def test_an_epoch_whose_work_depends_on_values_is_sampled() -> None:
    class Masks(Steps):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x[x[:, 0] > 0])

    count = count_epoch(Masks(), DataLoader(tensors(10), batch_size=5))
    assert (count.amount, count.source) == (10 * STEP, "flops.real.sampled")
