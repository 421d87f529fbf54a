from __future__ import annotations

import copy
import inspect
import io
import json
import math
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import prov4ml
from prov4ml import ProvenanceTrackedModel, WeightDistributionTrackedModel, get_metric
from provml_lightning.errors import ConfigurationError, RecordDroppedWarning
from provml_lightning.wrappers import activations, layers
from provml_lightning.wrappers.chunks import read_chunks

GANG = Path(__file__).with_name("tracked_gang.py")


def _net() -> nn.Sequential:
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))


def _start(folder: Path, **options: Any) -> Any:
    return prov4ml.start_run("digits", provenance_save_dir=folder, **options)


def _document(folder: Path) -> Any:
    return json.loads((folder / "digits_0" / "prov_digits_0.json").read_text("utf-8"))


def _chunks(folder: Path, label: str, name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(read_chunks(folder / "digits_0" / "artifacts" / label / f"{name}.npys"))


def _samples(folder: Path, label: str, name: str) -> np.ndarray:
    return np.concatenate([samples for _, samples in _chunks(folder, label, name)])


def _notes(folder: Path) -> Any:
    return _document(folder)["activity"]["run/digits_0"].get("provml:note", [])


@pytest.mark.parametrize("wrapper", [ProvenanceTrackedModel, WeightDistributionTrackedModel])
def test_the_signatures_are_the_documented_ones(wrapper: Any) -> None:
    parameters = list(inspect.signature(wrapper).parameters.values())

    assert [(one.name, one.default) for one in parameters[:4]] == [
        ("model_label", inspect.Parameter.empty),
        ("model", inspect.Parameter.empty),
        ("context", None),
        ("chunk_size", 64),
    ]
    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in parameters[4:])


def test_every_layer_s_inputs_and_outputs_are_kept_exactly(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(inplace=True), nn.Linear(2, 1))
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, -1.0], [0.5, 100_000.0]]))
        net[2].weight.copy_(torch.tensor([[2.0, 1.0]]))
        net[2].bias.fill_(0.25)
    with _start(tmp_path):
        tracked = ProvenanceTrackedModel("net", net, context="Training", chunk_size=2)
        tracked(torch.tensor([[1.0, 3.0], [4.0, 2.0], [1.0, 1.0]]))
        tracked.eval()
        tracked(torch.tensor([[2.0, 0.0]]))

    # 100 000 x 3 + 0.5 is no float16; the ReLU works in place and must not reach what was copied.
    assert _samples(tmp_path, "net", "0=input").tolist() == [[1, 3], [4, 2], [1, 1], [2, 0]]
    assert _samples(tmp_path, "net", "0=output").tolist() == [
        [-2.0, 300_000.5],
        [2.0, 200_002.0],
        [0.0, 100_000.5],
        [2.0, 1.0],
    ]
    assert _samples(tmp_path, "net", "2=input")[0].tolist() == [0.0, 300_000.5]
    assert _samples(tmp_path, "net", "2=output").tolist() == [
        [300_000.75],
        [200_006.25],
        [100_000.75],
        [5.25],
    ]
    assert _samples(tmp_path, "net", "0=output").dtype == np.float32
    chunks = _chunks(tmp_path, "net", "0=input")
    assert [len(samples) for _, samples in chunks] == [2, 2]
    marks = np.concatenate([marks for marks, _ in chunks])
    assert marks["forward"].tolist() == [0, 0, 0, 1]
    assert marks["training"].tolist() == [True, True, True, False]


def test_the_document_says_what_was_kept(tmp_path: Path) -> None:
    with _start(tmp_path):
        tracked = ProvenanceTrackedModel("net", _net(), context="training", chunk_size=8)
        for _ in range(3):
            tracked(torch.ones(5, 3))

    entities = _document(tmp_path)["entity"]
    folder = entities["artifact/Training/net/activations"]
    assert folder["dcterms:identifier"] == "artifacts/net"
    assert folder["provml:forward_passes"] == 3
    assert folder["provml:layers"] == 2
    assert folder["provml:files"] == 4
    model = entities["model/Training/net/activations"]
    assert model["provml:activations"] == "artifacts/net"
    assert model["provml:total_params"] == 3 * 4 + 4 + 4 * 2 + 2
    assert _notes(tmp_path) == []


def test_outputs_and_gradients_are_those_of_the_bare_model_bit_for_bit(tmp_path: Path) -> None:
    bare, wrapped = _net(), _net()
    threads = torch.get_num_threads()
    with _start(tmp_path):
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
    bare, tracked = _net(), ProvenanceTrackedModel("net", _net())
    with torch.no_grad():
        bare[0].weight.fill_(5.0)
    assert list(tracked.state_dict()) == list(bare.state_dict())

    tracked.load_state_dict(bare.state_dict())
    assert tracked.unwrapped[0].weight[0, 0].item() == 5.0  # type: ignore[index]
    bare.load_state_dict(tracked.state_dict())

    outer, outer_bare = nn.Module(), nn.Module()
    outer.net, outer_bare.net = ProvenanceTrackedModel("net", _net()), bare
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


def test_halves_keep_their_type_and_bfloat16_loses_nothing(tmp_path: Path) -> None:
    with _start(tmp_path):
        for label, dtype in (("half", torch.float16), ("brain", torch.bfloat16)):
            net = nn.Linear(1, 1, bias=False).to(dtype)
            with torch.no_grad():
                net.weight.fill_(3.0)
                ProvenanceTrackedModel(label, net)(torch.tensor([[1e4]], dtype=dtype))

    assert _samples(tmp_path, "half", "root=output").dtype == np.float16
    kept = _samples(tmp_path, "brain", "root=output")
    assert kept.dtype == np.float32
    assert kept.item() == (torch.tensor(1e4, dtype=torch.bfloat16) * 3).item()


def test_more_tensors_than_one_have_files_of_their_own(tmp_path: Path) -> None:
    torch.manual_seed(1)
    with _start(tmp_path), torch.no_grad():
        tracked = ProvenanceTrackedModel("net", nn.LSTM(2, 3, batch_first=True))
        output, (hidden, cell) = tracked(torch.ones(4, 5, 2))

    assert np.array_equal(_samples(tmp_path, "net", "root=output"), output)
    assert np.array_equal(_samples(tmp_path, "net", "root=output.1"), hidden)
    assert np.array_equal(_samples(tmp_path, "net", "root=output.2"), cell)


def test_copies_and_pickles_are_tracked_models_of_their_own(tmp_path: Path) -> None:
    with _start(tmp_path):
        tracked = ProvenanceTrackedModel("net", _net())
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

    assert len(_samples(tmp_path, "net", "0=input")) == 1 + 2 + 2 + 1
    assert len(_samples(tmp_path, "net-2", "0=input")) == 2 + 1
    assert len(_samples(tmp_path, "net-3", "0=input")) == 2 + 1


# Where warnings are errors, torch's own look at .grad fails; it means to hide this warning.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
def test_a_compiled_model_is_followed_too(tmp_path: Path) -> None:
    batch = torch.ones(2, 3)
    expected = _net()(batch)
    with _start(tmp_path):
        for compiled in (
            torch.compile(ProvenanceTrackedModel("outside", _net()), backend="eager"),
            ProvenanceTrackedModel("inside", torch.compile(_net(), backend="eager")),
        ):
            for _ in range(3):
                assert torch.equal(compiled(batch), expected)

    assert _samples(tmp_path, "outside", "0=input").shape == (6, 3)
    assert _samples(tmp_path, "inside", "0=input").shape == (6, 3)


def test_closing_leaves_no_hook(tmp_path: Path) -> None:
    net = _net()
    with _start(tmp_path):
        tracked = ProvenanceTrackedModel("net", net)
        tracked(torch.ones(1, 3))
        tracked.close()
        tracked.close()
        assert all(not vars(module)["_forward_hooks"] for module in net.modules())
        assert torch.equal(tracked(torch.ones(1, 3)), net(torch.ones(1, 3)))

    assert len(_samples(tmp_path, "net", "0=input")) == 1


def test_the_layers_to_follow_can_be_named(tmp_path: Path) -> None:
    with _start(tmp_path):
        ProvenanceTrackedModel("net", _net(), layers=[nn.ReLU])(torch.ones(1, 3))
    names = sorted(path.name for path in (tmp_path / "digits_0/artifacts/net").iterdir())
    assert names == ["1=input.npys", "1=output.npys"]

    with pytest.raises(ConfigurationError, match="has no layers to follow"):
        ProvenanceTrackedModel("net", nn.ReLU())
    with pytest.raises(ConfigurationError, match="model=dict is not a"):
        ProvenanceTrackedModel("net", {})
    with pytest.raises(ConfigurationError, match="chunk_size=0 must"):
        ProvenanceTrackedModel("net", _net(), chunk_size=0)


def test_without_a_run_and_on_silent_ranks_nothing_is_written(tmp_path: Path) -> None:
    tracked = ProvenanceTrackedModel("net", _net())
    tracked(torch.ones(1, 3))
    with _start(tmp_path, rank=1):
        tracked(torch.ones(1, 3))
    assert list(tmp_path.iterdir()) == []


def test_a_forward_that_raises_is_not_kept(tmp_path: Path) -> None:
    with _start(tmp_path):
        tracked = ProvenanceTrackedModel("net", _net())
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            tracked(torch.ones(1, 5))
        tracked(torch.ones(2, 3))
    assert len(_samples(tmp_path, "net", "0=input")) == 2


def test_the_disk_s_share_is_bounded_and_the_document_says_so(tmp_path: Path) -> None:
    run = _start(tmp_path)
    with pytest.warns(RecordDroppedWarning, match="no longer recorded"):  # noqa: PT031  a thread's
        # A forward pass has 4 x (3 + 4 + 4 + 2) values of 4 bytes.
        tracked = ProvenanceTrackedModel("net", _net(), max_bytes=5 * 4 * 13 * 4)
        for _ in range(20):
            tracked(torch.ones(4, 3))
        run.close()

    assert len(_samples(tmp_path, "net", "0=input")) == 5 * 4
    assert "max_bytes=1040 are reached" in str(_notes(tmp_path))


def test_a_slow_disk_drops_whole_forwards_and_never_stops_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = 3 * 4 * 13 * 4  # room for three forward passes
    for module in (activations, layers):
        monkeypatch.setattr(module, "MOST_WAITING", share)
    go = threading.Event()
    to_array = activations.to_array
    monkeypatch.setattr(activations, "to_array", lambda one: go.wait(60) and to_array(one))
    with _start(tmp_path):
        tracked = ProvenanceTrackedModel("net", _net())
        for _ in range(10):
            tracked(torch.ones(4, 3))
        go.set()

    marks = np.concatenate([marks for marks, _ in _chunks(tmp_path, "net", "2=output")])
    assert sorted(set(marks["forward"].tolist())) == [0, 1, 2]
    assert "the disk was slower than the training (7 times)" in str(_notes(tmp_path))


def test_a_full_disk_stops_the_recording_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    run = _start(tmp_path)
    with pytest.warns(RecordDroppedWarning, match="No space left"):  # noqa: PT031  a thread's
        tracked = ProvenanceTrackedModel("net", _net(), chunk_size=1)
        monkeypatch.setattr("provml_lightning.wrappers.chunks.ChunkFile._append", full)
        for _ in range(3):
            tracked(torch.ones(4, 3))
        prov4ml.log_metric("loss", 0.5)
        run.close()

    assert "No space left on device" in str(_notes(tmp_path))
    assert get_metric(tmp_path / "digits_0", "loss")["value"].tolist() == [0.5]


def test_threads_keep_their_forwards_apart(tmp_path: Path) -> None:
    with _start(tmp_path), torch.no_grad():
        tracked = ProvenanceTrackedModel("net", nn.Linear(1, 1))
        tracked.weight.fill_(1.0)
        tracked.bias.zero_()

        def walk(number: int) -> None:
            for _ in range(20):
                tracked(torch.full((3, 1), float(number)))

        threads = [threading.Thread(target=walk, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    marks = np.concatenate([marks for marks, _ in _chunks(tmp_path, "net", "root=input")])
    taken, gave = (_samples(tmp_path, "net", f"root={kind}") for kind in ("input", "output"))
    assert np.array_equal(taken, gave)
    assert len(taken) == 4 * 20 * 3
    for number in range(80):
        assert len(set(taken[marks["forward"] == number].ravel())) == 1


def test_two_ranks_of_a_process_group_keep_their_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    subprocess.run([*command, str(GANG), "ddp", str(tmp_path)], check=True, timeout=100)

    # Rank r has the rows 10 r, 10 r + 1, ... and both have the gradients' mean in their weights.
    for label, first in (("net", 0.0), ("net~rank1", 10.0)):
        taken = _samples(tmp_path, label, "root=input")
        assert taken[:, 0].tolist() == [first, first + 1.0, first + 2.0]
    weights = [float((tmp_path / f"weight-{rank}").read_text("utf-8")) for rank in (0, 1)]
    # loss = mean(w x): the gradient is the mean of x, 1 on rank 0 and 11 on rank 1, together 6.
    assert weights == [2.0 - 0.5 * 6.0] * 2


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_a_killed_process_leaves_chunks_that_can_be_read(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, str(GANG), "killed", str(tmp_path)], check=False)
    assert ended.returncode == -signal.SIGKILL

    taken = _samples(tmp_path, "net", "root=input")
    assert taken[:, 0].tolist() == [float(number) for number in range(len(taken))]
    assert len(taken) >= 64
    path = tmp_path / "digits_0/artifacts/net/root=input.npys"
    os.truncate(path, path.stat().st_size - 3)
    assert len(_samples(tmp_path, "net", "root=input")) == len(taken) - 16


def test_weights_are_told_as_seven_metrics_a_layer(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(5, 1), nn.ReLU(), nn.LSTM(1, 1))
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, 2.0, 3.0, 4.0, 10.0]]))
    with _start(tmp_path):
        tracked = WeightDistributionTrackedModel("net", net, context="Training")
        for epoch in (0, 1):
            tracked.log_epoch(epoch)
            with torch.no_grad():
                net[0].weight.mul_(2.0)
        tracked.close()

    # Deviations from 4: -3 -2 -1 0 6, squares 9 4 1 0 36, mean 10. Quartiles fall on elements.
    expected = {
        "mean": 4.0,
        "std": math.sqrt(10),
        "min": 1.0,
        "max": 10.0,
        "p25": 2.0,
        "p50": 3.0,
        "p75": 4.0,
    }
    for statistic, value in expected.items():
        table = get_metric(tmp_path / "digits_0", f"net/0/{statistic}", context="Training")
        assert table["value"].tolist() == pytest.approx([value, 2 * value], rel=1e-15)
        assert table["step"].tolist() == table["epoch"].tolist() == [0, 1]
    labels = set(prov4ml.list_metrics(tmp_path / "digits_0")["label"])
    assert "net/2.weight_ih_l0/mean" in labels
    assert not any("bias" in label for label in labels)


def test_sums_of_many_weights_are_exact_to_float64(tmp_path: Path) -> None:
    net = nn.Linear(3000, 2000, bias=False)
    with torch.no_grad():
        net.weight.fill_(0.1)  # as float32 0.100000001490116...
        net.weight[0, 0] = float(2**24)
    with _start(tmp_path):
        WeightDistributionTrackedModel("net", net).log_epoch(0)

    tenth, count = float(np.float32(0.1)), 6_000_000
    mean = (2.0**24 + (count - 1) * tenth) / count
    assert get_metric(tmp_path / "digits_0", "net/root/mean")["value"].item() == pytest.approx(
        mean, rel=1e-12
    )


def test_odd_weights_have_honest_numbers(tmp_path: Path) -> None:
    odd = nn.ParameterDict(
        {
            "nan": torch.tensor([1.0, math.nan]),
            "infinite": torch.tensor([1.0, math.inf]),
            "between": torch.tensor([0.0, 1.0], dtype=torch.float16),
            "one": torch.tensor([7.0], dtype=torch.bfloat16),
        }
    )
    odd.register_parameter("nothing", nn.Parameter(torch.empty(0)))
    with _start(tmp_path):
        WeightDistributionTrackedModel("odd", nn.Sequential(odd, nn.LazyLinear(2))).log_epoch(0)

    def told(name: str) -> float:
        table = get_metric(tmp_path / "digits_0", f"odd/0.{name}")
        return float(table["value"].item())

    assert math.isnan(told("nan/mean"))
    assert math.isnan(told("nan/min"))
    assert told("infinite/max") == math.inf
    assert told("infinite/min") == 1.0
    assert told("between/p25") == 0.25
    assert told("one/std") == 0.0
    assert not any("nothing" in x for x in prov4ml.list_metrics(tmp_path / "digits_0")["label"])


@pytest.mark.gpu
def test_tensors_on_a_gpu_are_copied_as_they_were(tmp_path: Path) -> None:
    net = nn.Linear(64, 64, bias=False).cuda()
    with torch.no_grad():
        net.weight.copy_(torch.eye(64))
    with _start(tmp_path):
        tracked = ProvenanceTrackedModel("net", net)
        for number in range(50):
            batch = torch.full((8, 64), float(number), device="cuda")
            tracked(batch)
            batch.zero_()

    taken = _samples(tmp_path, "net", "root=output")
    assert taken[::8, 0].tolist() == [float(number) for number in range(50)]
