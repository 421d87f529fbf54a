from __future__ import annotations

import copy
import io
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

from prov4ml import ProvenanceTrackedModel
from tests.integration.tracking.tracked_runs import network, samples, start

if TYPE_CHECKING:
    from pathlib import Path


def test_outputs_and_gradients_are_those_of_the_bare_model_bit_for_bit(tmp_path: Path) -> None:
    bare, wrapped = network(), network()
    threads = torch.get_num_threads()
    with start(tmp_path):
        tracked = ProvenanceTrackedModel("net", wrapped)
        for model in (bare, tracked):
            torch.manual_seed(3)
            batch = torch.randn(6, 3)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            for _ in range(3):
                optimizer.zero_grad()
                model(batch).square().sum().backward()
                optimizer.step()

    assert torch.get_num_threads() == threads
    for (name, left), (other, right) in zip(
        bare.named_parameters(), tracked.named_parameters(), strict=True
    ):
        assert name == other
        assert torch.equal(left, right)
        assert left.grad is not None
        assert right.grad is not None
        assert torch.equal(left.grad, right.grad)
    assert torch.equal(bare(torch.ones(2, 3)), tracked(torch.ones(2, 3)))


def test_states_have_the_model_s_keys_and_load_either_way() -> None:
    bare, tracked = network(), ProvenanceTrackedModel("net", network())
    with torch.no_grad():
        bare[0].weight.fill_(5.0)
    assert list(tracked.state_dict()) == list(bare.state_dict())

    tracked.load_state_dict(bare.state_dict())
    assert tracked.unwrapped[0].weight[0, 0].item() == 5.0  # type: ignore[index]
    bare.load_state_dict(tracked.state_dict())

    outer, outer_bare = nn.Module(), nn.Module()
    outer.net, outer_bare.net = ProvenanceTrackedModel("net", network()), bare
    assert list(outer.state_dict()) == list(outer_bare.state_dict())
    assert outer.load_state_dict(outer_bare.state_dict()).missing_keys == []
    assert outer.net.unwrapped[0].weight[0, 0].item() == 5.0  # type: ignore[index]
    with pytest.raises(RuntimeError, match="Unexpected key"):
        tracked.load_state_dict({**bare.state_dict(), "more": torch.ones(1)})


class _Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.temperature = 1.0
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("seen", torch.zeros(1))
        self.head = nn.Linear(2, 2)
        self.drop = nn.Dropout(0.5)

    def forward(self, batch: torch.Tensor, *, factor: float = 1.0) -> dict[str, torch.Tensor]:
        self.seen += len(batch)
        noisy = nn.functional.dropout(batch, training=self.training)
        return {"logits": self.head(noisy) * self.scale * factor / self.temperature}

    def described(self) -> str:
        return f"at {self.temperature}"


def test_attributes_modes_and_types_are_the_model_s_own() -> None:
    net = _Net()
    tracked: Any = ProvenanceTrackedModel("net", net)

    assert tracked.described() == "at 1.0"
    tracked.temperature = 4.0
    assert net.temperature == 4.0
    tracked.head = nn.Linear(2, 3)
    assert net.head is tracked.head
    assert [name for name, _ in tracked.named_modules()] == ["", "head", "drop"]
    tracked.eval()
    assert not net.training
    assert not net.drop.training
    tracked.training = True  # as Lightning restores a mode
    assert net.training
    assert tracked.half() is tracked
    assert {parameter.dtype for parameter in net.parameters()} == {torch.float16}
    assert tracked.to(torch.float64) is tracked
    told = tracked(torch.ones(4, 2, dtype=torch.float64), factor=2.0)
    assert told["logits"].dtype == torch.float64
    assert net.seen.item() == 4
    del tracked.temperature
    assert not hasattr(net, "temperature")
    with pytest.raises(AttributeError, match="nothing"):
        _ = tracked.nothing
    assert "Linear(in_features=2, out_features=3" in repr(tracked)


def test_copies_and_pickles_are_tracked_models_of_their_own(tmp_path: Path) -> None:
    with start(tmp_path):
        tracked = ProvenanceTrackedModel("net", network())
        tracked(torch.ones(1, 3))
        file = io.BytesIO()
        torch.save(tracked, file)
        file.seek(0)
        for other in (copy.deepcopy(tracked), torch.load(file, weights_only=False)):
            assert torch.equal(other(torch.ones(2, 3)), tracked(torch.ones(2, 3)))
            with torch.no_grad():
                for parameter in other.parameters():
                    parameter.zero_()
            assert other(torch.ones(1, 3)).abs().sum() == 0
        assert tracked(torch.ones(1, 3)).abs().sum() > 0

    assert len(samples(tmp_path, "net", "0=input")) == 1 + 2 + 2 + 1
    assert len(samples(tmp_path, "net-2", "0=input")) == 2 + 1
    assert len(samples(tmp_path, "net-3", "0=input")) == 2 + 1


# Where warnings are errors, torch's own look at .grad fails; it means to hide this warning.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
def test_a_compiled_model_is_followed_too(tmp_path: Path) -> None:
    batch = torch.ones(2, 3)
    expected = network()(batch)
    with start(tmp_path):
        for compiled in (
            torch.compile(ProvenanceTrackedModel("outside", network()), backend="eager"),
            ProvenanceTrackedModel("inside", torch.compile(network(), backend="eager")),
        ):
            for _ in range(3):
                assert torch.equal(compiled(batch), expected)

    assert samples(tmp_path, "outside", "0=input").shape == (6, 3)
    assert samples(tmp_path, "inside", "0=input").shape == (6, 3)


def test_closing_leaves_no_hook(tmp_path: Path) -> None:
    net = network()
    with start(tmp_path):
        tracked = ProvenanceTrackedModel("net", net)
        tracked(torch.ones(1, 3))
        tracked.close()
        tracked.close()
        assert all(not vars(module)["_forward_hooks"] for module in net.modules())
        assert torch.equal(tracked(torch.ones(1, 3)), net(torch.ones(1, 3)))

    assert len(samples(tmp_path, "net", "0=input")) == 1
