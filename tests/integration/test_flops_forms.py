"""FLOPs against closed forms, written by hand: two for every multiply-add of a matrix product."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import rnn
from torch.nn.utils.parametrizations import weight_norm

from provml_lightning.samplers.flops import count_batch

if TYPE_CHECKING:
    from collections.abc import Callable


class Called(nn.Module):
    """A module of one function and, where it needs them, weights."""

    def __init__(self, function: Callable[..., Any], *weights: int) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.ones(weights)) if weights else None

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x) if self.weight is None else self.function(x, self.weight)


class Own(nn.Linear):
    """A linear layer of the user's."""


class Twice(nn.Module):
    """The same layer, two times."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(self.layer(x))


class Tied(nn.Module):
    """An output layer with the weights of the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 4)
        self.output = nn.Linear(4, 11, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(self.embedding(x))


class Attention(nn.Module):
    """Three projections, attention in heads, and one projection of the result."""

    def __init__(self, width: int, heads: int, *, fused: bool) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 3 * width)
        self.outer = nn.Linear(width, width)
        self.heads = heads
        self.fused = fused

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.inner(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        if self.fused:
            mixed = functional.scaled_dot_product_attention(query, key, value)
        else:
            mixed = (query @ key.transpose(-2, -1)).softmax(-1) @ value
        return self.outer(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Two 3×3 convolutions and a way around them."""

    def __init__(self, entering: int, leaving: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(entering, leaving, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(leaving)
        self.second = nn.Conv2d(leaving, leaving, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(leaving)
        self.around = nn.Sequential()
        if stride > 1:
            self.around = nn.Sequential(
                nn.Conv2d(entering, leaving, 1, stride, bias=False), nn.BatchNorm2d(leaving)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first_norm(self.first(x)).relu()
        return (self.second_norm(self.second(y)) + self.around(x)).relu()


def resnet18() -> nn.Module:
    widths = [64, 64, 128, 256, 512]
    blocks = [
        Block(entering if first else leaving, leaving, 2 if first and leaving > 64 else 1)
        for entering, leaving in pairwise(widths)
        for first in (True, False)
    ]
    begin = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()
    end = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)
    return nn.Sequential(*begin, nn.MaxPool2d(3, 2, 1), *blocks, *end)


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=32, batch_first=True)
    return nn.TransformerEncoder(layer, num_layers=2)


# Batch 2, length 5, width 8, hidden 32: projections 4, attention 2 products, two more matrices.
ATTENTION = 2 * (2 * 5) * 8 * (3 * 8) + 4 * 2 * 5 * 5 * 8 + 2 * (2 * 5) * 8 * 8
ENCODER = 2 * (ATTENTION + 2 * (2 * (2 * 5) * 8 * 32))
# ResNet18 on 224×224: first convolution, four stages (halved and doubled), last layer.
STAGE = 2 * 64 * 64 * 9 * 56 * 56
RESNET18 = (
    2 * 64 * 112 * 112 * 3 * 49  # 7×7
    + 4 * STAGE
    + 3 * (STAGE // 2 + 3 * STAGE + STAGE // 18)  # the first at half the channels; the way around
    + 2 * 512 * 1000
)

CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int]] = {
    "linear": (lambda: nn.Linear(6, 5), (3, 6), 2 * 3 * 6 * 5),
    "the same linear twice": (Twice, (3, 6), 2 * (2 * 3 * 6 * 6)),
    "a subclass of linear": (lambda: Own(6, 5), (3, 6), 2 * 3 * 6 * 5),
    "linear as a function": (lambda: Called(functional.linear, 5, 6), (3, 6), 2 * 3 * 6 * 5),
    "einsum": (
        lambda: Called(lambda x, w: torch.einsum("bi,oi->bo", x, w), 5, 6),
        (3, 6),
        2 * 3 * 6 * 5,
    ),
    "matrix times vector": (lambda: Called(torch.mv, 6), (3, 6), 2 * 3 * 6),
    "convolution 1d": (lambda: nn.Conv1d(3, 4, 5), (2, 3, 20), 2 * 2 * 4 * 16 * 3 * 5),
    "convolution 2d": (
        lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1),
        (2, 3, 8, 6),
        2 * 2 * 4 * (4 * 3) * 3 * 9,
    ),
    # pytorch #183405: not divided by the groups.
    "grouped convolution": (
        lambda: nn.Conv2d(4, 8, 3, groups=2, padding=1),
        (2, 4, 7, 7),
        2 * 2 * 8 * 49 * 2 * 9,
    ),
    "depthwise convolution": (
        lambda: nn.Conv2d(4, 4, 3, groups=4, padding=1),
        (2, 4, 7, 7),
        2 * 2 * 4 * 49 * 1 * 9,
    ),
    # pytorch #119806: counted by the size of the output.
    "transposed convolution": (
        lambda: nn.ConvTranspose2d(3, 4, 3, stride=2),
        (2, 3, 5, 5),
        2 * 2 * 3 * 25 * 4 * 9,
    ),
    # fvcore #98: no count at all.
    "lstm": (lambda: nn.LSTM(6, 5), (7, 3, 6), 2 * 7 * 3 * 4 * 5 * (6 + 5)),
    "lstm, two layers, both ways": (
        lambda: nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True),
        (3, 7, 6),
        2 * 7 * 3 * 4 * 5 * 2 * ((6 + 5) + (10 + 5)),
    ),
    "lstm with a projection": (
        lambda: nn.LSTM(6, 5, proj_size=2),
        (7, 3, 6),
        2 * 7 * 3 * (4 * 5 * (6 + 2) + 5 * 2),
    ),
    "gru": (lambda: nn.GRU(6, 5), (7, 3, 6), 2 * 7 * 3 * 3 * 5 * (6 + 5)),
    "rnn": (lambda: nn.RNN(6, 5), (7, 3, 6), 2 * 7 * 3 * 5 * (6 + 5)),
    # thop #197, pytorch #195460: attention on the CPU is not counted.
    "attention, fused": (lambda: Attention(8, 2, fused=True), (2, 5, 8), ATTENTION),
    "attention by matmul": (lambda: Attention(8, 2, fused=False), (2, 5, 8), ATTENTION),
    "encoder, training": (encoder, (2, 5, 8), ENCODER),
    "encoder, evaluating": (lambda: encoder().eval(), (2, 5, 8), ENCODER),
    "weight norm": (lambda: weight_norm(nn.Linear(6, 5)), (3, 6), 2 * 3 * 6 * 5),
}


@pytest.mark.parametrize("engine", ["meta", "real"])
@pytest.mark.parametrize("case", CASES)
def test_the_count_is_the_closed_form(case: str, engine: str) -> None:
    make, shape, flops = CASES[case]
    count = count_batch(make(), torch.ones(shape), engine)
    assert (count.amount, count.unit, count.source) == (flops, "FLOP", f"flops.{engine}")


@pytest.mark.parametrize("engine", ["meta", "real"])
def test_resnet18_is_exact(engine: str) -> None:
    assert RESNET18 == 3_628_146_688
    assert count_batch(resnet18(), torch.ones(1, 3, 224, 224), engine).amount == RESNET18


@pytest.mark.parametrize("engine", ["meta", "real"])
def test_tied_weights_count_where_they_multiply(engine: str) -> None:
    tokens = torch.ones(2, 5, dtype=torch.long)
    assert count_batch(Tied(), tokens, engine).amount == 2 * 10 * 4 * 11


@pytest.mark.parametrize("case", CASES)
def test_twice_the_batch_is_twice_the_work_also_when_evaluating(case: str) -> None:
    make, shape, flops = CASES[case]
    if case in {"lstm", "lstm with a projection", "gru", "rnn"}:
        double = (shape[0], 2 * shape[1], shape[2])
    else:
        double = (2 * shape[0], *shape[1:])
    assert count_batch(make().eval(), torch.ones(double)).amount == 2 * flops


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_the_floating_type_of_weights_and_inputs_does_not_matter(dtype: torch.dtype) -> None:
    model = nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.Linear(5, 2)).to(dtype)
    count = count_batch(model, torch.ones(3, 6))
    assert (count.amount, count.source) == (2 * 3 * (6 * 5 + 5 * 2), "flops.meta")


def test_a_packed_sequence_counts_the_steps_that_there_are() -> None:
    packed = rnn.pack_sequence([torch.ones(4, 6), torch.ones(2, 6)])
    for engine in ("meta", "real"):
        for layer, gates in ((nn.LSTM(6, 5), 4), (nn.GRU(6, 5), 3), (nn.RNN(6, 5), 1)):
            count = count_batch(layer, packed, engine)
            assert count.amount == 2 * (4 + 2) * gates * 5 * (6 + 5)


def test_a_hundred_thousand_time_steps_are_counted_at_once() -> None:
    count = count_batch(nn.LSTM(6, 5), torch.ones(100_000, 1, 6))  # minutes, step by step
    assert (count.amount, count.source) == (2 * 100_000 * 4 * 5 * (6 + 5), "flops.meta")


def test_a_padding_mask_changes_no_count() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder()

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return self.encoder(x, src_key_padding_mask=mask)

    mask = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    for engine in ("meta", "real"):
        count = count_batch(Masked().eval(), (torch.ones(2, 5, 8), mask), engine)
        assert count.amount == ENCODER


def test_inside_inference_mode_and_autocast_the_count_is_the_same() -> None:
    with torch.inference_mode():
        assert count_batch(Attention(8, 2, fused=True), torch.ones(2, 5, 8)).amount == ATTENTION
    with torch.autocast("cpu"):
        assert count_batch(Attention(8, 2, fused=True), torch.ones(2, 5, 8)).amount == ATTENTION


@pytest.mark.parametrize("engine", ["meta", "real"])
def test_what_has_no_formula_makes_the_count_incomplete(engine: str) -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.both = nn.Bilinear(3, 4, 5)
            self.last = nn.Linear(5, 2)

        def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
            return self.last(self.both(left, right))

    count = count_batch(Mixed(), (torch.ones(7, 3), torch.ones(7, 4)), engine)
    assert count.amount == 2 * 7 * 5 * 2
    assert count.missing == {"aten._trilinear"}
    assert count.source == f"flops.{engine}.incomplete"


def test_a_sparse_matrix_is_not_counted_as_a_dense_one_without_a_word() -> None:
    def product(x: torch.Tensor) -> torch.Tensor:
        return torch.sparse.mm(torch.eye(3).to_sparse(), x)

    count = count_batch(Called(product), torch.ones(3, 6), "real")
    assert count.source == "flops.real.incomplete"


def test_thop_gives_macs_and_its_own_way_of_counting() -> None:
    model = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 2))
    count = count_batch(model, torch.ones(3, 6), "thop")
    assert (count.amount, count.unit, count.source) == (3 * (6 * 5 + 5 * 2), "MAC", "thop")
    assert count_batch(Own(6, 5), torch.ones(3, 6), "thop").amount == 0
    assert count_batch(nn.Linear(6, 5), {"input": torch.ones(3, 6)}, "thop").amount == 3 * 6 * 5
