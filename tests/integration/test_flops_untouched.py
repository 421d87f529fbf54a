"""Counting leaves a model, its random numbers and its training as they were, even if it fails."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.modules import module as module_hooks
from torch.nn.parallel import DistributedDataParallel

import prov4ml
from provml_lightning.errors import SamplerReadError, SamplerUnavailableError
from provml_lightning.samplers.flops import count_batch
from tests.training import Digits, digits, trainer

ENGINES = ["auto", "meta", "real", "thop"]


class Restless(nn.Module):
    """Changes whatever a forward pass can change, and counts as 2·3·6·5 all the same."""

    def __init__(self, fails: str = "") -> None:
        super().__init__()
        self.layer = nn.Linear(6, 5)
        self.norm = nn.BatchNorm1d(5)
        self.frozen = nn.BatchNorm1d(5).eval()
        self.plain = torch.zeros(5)
        self.history: list[int] = []
        self.calls = 0
        self.fails = fails
        self.chance = torch.Generator()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.history.append(self.calls)
        self.plain += 1
        self.new = torch.ones(3)
        random.random()  # noqa: S311
        np.random.rand()  # noqa: NPY002
        torch.rand(3, generator=self.chance, device="cpu")
        y = self.frozen(self.norm(nn.functional.dropout(self.layer(x))))
        self.train(not self.training)
        if self.fails:
            raise ValueError(self.fails)
        return y + self.plain


def everything(model: nn.Module) -> dict[str, Any]:
    def kept(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return id(value), value._version, value.tolist()  # noqa: SLF001  what autograd checks
        if isinstance(value, torch.Generator):
            return id(value), value.get_state().tolist()
        if isinstance(value, (dict, list, set)):
            inner = value.items() if isinstance(value, dict) else enumerate(value)
            return id(value), [(key, kept(each)) for key, each in inner]
        return value if isinstance(value, (bool, int, str)) else id(value)

    return {
        f"{name}.{key}": kept(value)
        for name, module in model.named_modules()
        for key, value in vars(module).items()
    } | {
        "torch": torch.get_rng_state().tolist(),
        "numpy": np.random.get_state()[1].tolist(),  # noqa: NPY002
        "python": random.getstate(),
        "threads": threading.active_count(),
        "fast path": torch.backends.mha.get_fastpath_enabled(),
        "global hooks": len(module_hooks._global_forward_hooks),  # noqa: SLF001  torch tells it nowhere else,
    }


@pytest.mark.parametrize("fails", ["", "no such thing"])
@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_of_the_model_and_no_random_number_is_changed(engine: str, fails: str) -> None:
    model = Restless(fails)
    model.layer(torch.ones(3, 6)).sum().backward()
    called = []
    model.register_forward_hook(lambda *_: called.append("after"))
    model.layer.register_forward_pre_hook(lambda *_: called.append("before"))
    batch = torch.rand(3, 6, requires_grad=True)
    before = everything(model)
    gradient = model.layer.weight.grad

    with pytest.raises(SamplerReadError, match=fails) if fails else nullcontext():
        count_batch(model, batch, engine)

    assert everything(model) == before
    assert model.layer.weight.grad is gradient
    assert (called, batch.grad) == ([], None)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_state_loads_strictly_afterwards_and_a_frozen_norm_stays_frozen(engine: str) -> None:
    # thop #82, #96, #168: buffers of its own stay in the state_dict, and train() wakes all layers.
    model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Sigmoid(), nn.Linear(5, 2))
    model[1].eval()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    count_batch(model, torch.ones(3, 6), engine)
    assert list(model.state_dict()) == list(state)
    model.load_state_dict(state, strict=True)
    assert [layer.training for layer in model] == [True, False, True, True]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_graph_that_waits_for_its_backward_pass_stays_valid(engine: str) -> None:
    model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5))
    loss = model(torch.ones(3, 6)).square().sum()
    count_batch(model, torch.ones(3, 6), engine)
    loss.backward()
    assert model[0].weight.grad is not None


def test_counting_without_weights_copies_none() -> None:
    model = nn.Linear(4096, 4096)
    made = []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor) and result.device.type != "meta":
                made.append(result.untyped_storage())
            return result

    with Watch():
        count_batch(model, torch.ones(1, 4096), "meta")
    own = {each.data_ptr() for each in model.parameters()}
    assert all(each.nbytes() < 1_000_000 or each.data_ptr() in own for each in made)


def test_a_model_that_is_only_counted_is_let_go() -> None:
    model = nn.Linear(6, 5)
    alive = weakref.ref(model)
    count_batch(model, torch.ones(3, 6))
    del model
    gc.collect()
    assert alive() is None


class Told(Digits):
    """Counts itself before and while it is trained."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.log("seen", 1.0)
        return self.layer(images + torch.zeros(1, device=self.device))

    def training_step(self, batch: Any) -> torch.Tensor:
        self.counted = count_batch(self, batch)
        return super().training_step(batch)


def test_a_lightning_module_is_counted_while_its_trainer_trains_it(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = Told()
    fit = trainer(max_epochs=1, limit_val_batches=0)
    fit.fit(model, digits(), digits())
    assert (model.counted.amount, model.counted.source) == (2 * 8 * 64 * 10, "flops.meta")
    assert model.trainer is fit
    assert "seen" not in fit.logged_metrics


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # torch's own import
def test_wrappers_are_looked_through() -> None:
    model = nn.Linear(6, 5)
    compiled = torch.compile(model)
    tracked = prov4ml.ProvenanceTrackedModel("inner", model)
    for wrapper in (nn.DataParallel(model), compiled, tracked):
        assert count_batch(wrapper, torch.ones(3, 6)).amount == 2 * 3 * 6 * 5
    model.compile()
    assert count_batch(model, torch.ones(3, 6), "real").amount == 2 * 3 * 6 * 5


def test_a_distributed_model_is_counted_by_one_process_alone(tmp_path: Any) -> None:
    store = f"file://{tmp_path / 'store'}"
    torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        model = nn.Sequential(nn.Linear(6, 5), nn.SyncBatchNorm(5))
        wrapped = DistributedDataParallel(nn.Linear(6, 5))
        assert count_batch(wrapped, torch.ones(3, 6)).amount == 2 * 3 * 6 * 5
        for engine in ("meta", "real"):
            assert count_batch(model, torch.ones(3, 6), engine).amount == 2 * 3 * 6 * 5
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore:.torch.nn.utils.weight_norm:FutureWarning")
def test_weights_norms_by_hooks_and_tensors_in_containers_are_no_obstacle() -> None:
    class Contained(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 5)
            self.masks = {"first": [torch.ones(5)]}
            self.scale = self.layer.weight.sum() * 0 + 1  # not a leaf: torch copies no such tensor
            self.lock_free = (torch.ones(5),)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x) * self.masks["first"][0] * self.scale + self.lock_free[0]

    for model in (Contained(), nn.utils.weight_norm(nn.Linear(6, 5))):
        count = count_batch(model, torch.ones(3, 6), "meta")
        assert count.amount == 2 * 3 * 6 * 5


def test_what_cannot_be_copied_is_counted_by_a_real_pass_and_says_so() -> None:
    model = nn.Linear(6, 5)
    model.lock = threading.Lock()  # type: ignore[assignment]
    count = count_batch(model, torch.ones(3, 6))
    assert (count.amount, count.source) == (2 * 3 * 6 * 5, "flops.real")
    assert "lock" in str(count.remark)


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_a_scripted_model_is_counted_by_a_real_pass_of_a_copy() -> None:
    model = torch.jit.trace(nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5)), torch.ones(3, 6))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    count = count_batch(model, torch.ones(3, 6))
    assert (count.amount, count.source) == (2 * 3 * 6 * 5, "flops.real")
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("model", [None, "resnet18", nn.Linear, len])
def test_what_is_no_module_is_refused_at_once(model: Any) -> None:
    with pytest.raises(SamplerUnavailableError, match=r"give a torch\.nn\.Module"):
        count_batch(model, torch.ones(3, 6))
