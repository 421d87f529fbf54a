"""Which part of a batch goes into a forward pass, and what is remembered of it."""

from __future__ import annotations

from collections import UserDict, namedtuple
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

from provml_lightning.errors import ConfigurationError, SamplerReadError
from provml_lightning.samplers.flops import count_batch
from provml_lightning.samplers.flops.arguments import Arguments, readings

X, Y, Z = torch.ones(3, 6), torch.ones(3, dtype=torch.long), torch.ones(3, 4)


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclass(frozen=True)
class Sample:
    x: Any
    label: Any


Legacy = namedtuple("Legacy", "image target")  # noqa: PYI024  as many loaders still give


class Forward:
    """What a module's forward may look like."""

    def one(self, x: Any) -> Any: ...
    def one_and_mask(self, x: Any, mask: Any = None) -> Any: ...
    def two(self, x: Any, y: Any) -> Any: ...
    def batch(self, batch: Any) -> Any: ...
    def batch_and_index(self, batch: Any, index: int = 0) -> Any: ...
    def any_number(self, *parts: Any) -> Any: ...
    def any_name(self, **parts: Any) -> Any: ...
    def keyword(self, x: Any, *, y: Any) -> Any: ...
    def tokens(self, input_ids: Any = None, mask: Any = None, labels: Any = None) -> Any: ...


def positions(*args: Any) -> Arguments:
    return Arguments(args)


def names(**kwargs: Any) -> Arguments:
    return Arguments(kwargs=kwargs)


@pytest.mark.parametrize(
    ("forward", "batch", "first"),
    [
        ("one", "x", positions("x")),
        ("one", ("x", "y"), positions("x")),
        ("one", ["x", "y"], positions("x")),
        ("one", (["a", "b"], "y"), positions(["a", "b"])),
        ("one", Pair("x", "y"), names(x="x")),
        ("one", Legacy("x", "y"), positions("x")),
        ("one", Sample("x", "y"), names(x="x")),
        ("one", {"x": "x", "y": "y"}, names(x="x")),
        ("one", {"a": "x", "b": "y"}, positions({"a": "x", "b": "y"})),
        ("one", {0: "x"}, positions({0: "x"})),
        ("one_and_mask", ("x", "y"), positions("x")),
        ("two", ("x", "y"), positions("x", "y")),
        ("two", ("x", "y", "z"), positions("x", "y")),
        ("two", {"x": "x", "y": "y", "z": "z"}, names(x="x", y="y")),
        ("two", {"x": "x"}, positions({"x": "x"})),
        ("batch", ("x", "y"), positions(("x", "y"))),
        ("batch", {"batch": "x"}, positions({"batch": "x"})),
        ("batch_and_index", ["x", "y"], positions(["x", "y"])),
        ("any_number", ("x", "y"), positions("x", "y")),
        ("any_name", {"x": "x", "y": "y"}, names(x="x", y="y")),
        ("keyword", {"x": "x", "y": "y"}, names(x="x", y="y")),
        ("tokens", {"input_ids": "x", "other": "y"}, names(input_ids="x")),
        ("tokens", UserDict(input_ids="x", labels="y"), names(input_ids="x", labels="y")),
    ],
)
def test_the_first_reading_of_a_batch(forward: str, batch: Any, first: Arguments) -> None:
    assert next(readings(getattr(Forward(), forward), batch)) == first


def test_later_readings_are_all_members_and_the_whole_batch() -> None:
    found = list(readings(Forward().one_and_mask, ("x", "y")))
    assert found == [positions("x"), positions("x", "y"), positions(("x", "y"))]


class Net(nn.Module):
    """One layer, and a record of the types that went into it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 5)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


class Unpacks(Net):
    def forward(self, both: Any) -> Any:
        x, _ = both
        return self.layer(x)


class Strict(Net):
    def forward(self, images: Any, targets: Any = None) -> Any:
        if self.training and targets is None:
            raise ValueError("targets are needed to train")
        return self.layer(images)


@pytest.mark.parametrize("engine", ["meta", "real", "thop"])
@pytest.mark.parametrize(
    ("model", "batch"),
    [
        (Net(), X),
        (Net(), (X, Y)),
        (Net(), [X, Y]),
        (Net(), {"x": X, "names": ["a", "b", "c"]}),
        (Net(), Sample(X, Y)),
        (Net(), Pair(X, Y)),
        (Net(), Legacy(X, Y)),
        (Unpacks(), (X, Y)),
        (Strict(), (X, Y)),
    ],
)
def test_batches_of_any_structure_are_counted(model: nn.Module, batch: Any, engine: str) -> None:
    count = count_batch(model, batch, engine)
    assert count.amount == 3 * 6 * 5 * (1 if engine == "thop" else 2)


def test_a_batch_stays_as_it_is_whatever_forward_does_to_it() -> None:
    class Rude(Net):
        def forward(self, batch: Any) -> Any:
            batch["x"] = self.layer(batch["x"])
            batch["more"]["list"].clear()
            return batch["x"]

    batch = {"x": X, "more": {"list": [Y, Z]}}
    for engine in ("meta", "real"):
        count_batch(Rude(), batch, engine)
        assert batch["x"] is X
        assert batch["more"]["list"] == [Y, Z]  # type: ignore[index]


def test_a_shape_is_counted_once() -> None:
    passes = []

    class Counted(Net):
        def forward(self, x: Any) -> Any:
            passes.append(tuple(x.shape))
            return super().forward(x)

    model = Counted()
    for batch in (X, X + 1, torch.ones(2, 6), (X, Y), {"x": X}):
        count_batch(model, batch)
    # By position and by name are two readings of one shape.
    assert passes == [(3, 6), (2, 6), (3, 6)]


def test_a_model_that_changed_is_counted_again() -> None:
    model = nn.Sequential(nn.Linear(6, 5), nn.Dropout())
    assert count_batch(model, X).amount == 2 * 3 * 6 * 5
    model[0] = nn.Linear(6, 7)
    assert count_batch(model, X).amount == 2 * 3 * 6 * 7
    model.append(nn.Linear(7, 2))
    assert count_batch(model, X).amount == 2 * 3 * (6 * 7 + 7 * 2)

    class Deep(Net):
        depth = 1

        def forward(self, x: Any) -> Any:
            for _ in range(self.depth):
                self.layer(x)
            return x if self.training else self.layer(x)

    deep = Deep()
    assert count_batch(deep, X).amount == 2 * 3 * 6 * 5
    deep.depth = 3
    assert count_batch(deep, X).amount == 3 * (2 * 3 * 6 * 5)
    deep.eval()
    assert count_batch(deep, X).amount == 4 * (2 * 3 * 6 * 5)


class Chooses(Net):
    """Does the work of a layer as often as the first value says."""

    def forward(self, x: Any) -> Any:
        for _ in range(int(x[0, 0].item())):
            self.layer(x)
        return x


def test_work_that_depends_on_values_is_counted_for_each_batch_anew() -> None:
    model = Chooses()
    one, three = count_batch(model, X), count_batch(model, X * 3)
    assert (one.amount, three.amount) == (2 * 3 * 6 * 5, 3 * (2 * 3 * 6 * 5))
    assert one.by_values
    assert one.source == "flops.real"


def test_masks_depend_on_values_and_indices_do_not() -> None:
    class Masks(Net):
        def forward(self, x: Any) -> Any:
            return self.layer(x[x[:, 0] > 0])

    class Picks(Net):
        def forward(self, x: Any) -> Any:
            return self.layer(x[torch.tensor([0, 1], device=x.device)])

    masked, picked = count_batch(Masks(), X), count_batch(Picks(), X)
    assert (masked.amount, masked.source, masked.by_values) == (2 * 3 * 6 * 5, "flops.real", True)
    assert (picked.amount, picked.by_values) == (2 * 2 * 6 * 5, False)


def test_constants_on_another_device_are_counted_for_real() -> None:
    class Constant(Net):
        def forward(self, x: Any) -> Any:
            return self.layer(x) + torch.ones(5, device="cpu")

    count = count_batch(Constant(), X)
    assert (count.amount, count.source) == (2 * 3 * 6 * 5, "flops.real")


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Net(), "mat1 and mat2"),
        (nn.LazyLinear(5), "uninitialized"),
        (nn.Module(), 'missing the required "forward" function'),
    ],
)
def test_a_forward_that_fails_says_why(model: nn.Module, reason: str) -> None:
    with pytest.raises(SamplerReadError, match=reason):
        count_batch(model, torch.ones(3, 7))


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'auto', 'meta', 'real', 'thop'"):
        count_batch(Net(), X, "fvcore")
