from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import nn

from prov4ml import ProvenanceTrackedModel, WeightDistributionTrackedModel
from provml_lightning.errors import ConfigurationError
from tests.integration.tracking.tracked_runs import chunks, document, network, notes, samples, start

if TYPE_CHECKING:
    from pathlib import Path


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
    with start(tmp_path):
        tracked = ProvenanceTrackedModel("net", net, context="Training", chunk_size=2)
        tracked(torch.tensor([[1.0, 3.0], [4.0, 2.0], [1.0, 1.0]]))
        tracked.eval()
        tracked(torch.tensor([[2.0, 0.0]]))

    # 100 000 x 3 + 0.5 is no float16; the ReLU works in place and must not reach what was copied.
    assert samples(tmp_path, "net", "0=input").tolist() == [[1, 3], [4, 2], [1, 1], [2, 0]]
    assert samples(tmp_path, "net", "0=output").tolist() == [
        [-2.0, 300_000.5],
        [2.0, 200_002.0],
        [0.0, 100_000.5],
        [2.0, 1.0],
    ]
    assert samples(tmp_path, "net", "2=input")[0].tolist() == [0.0, 300_000.5]
    assert samples(tmp_path, "net", "2=output").tolist() == [
        [300_000.75],
        [200_006.25],
        [100_000.75],
        [5.25],
    ]
    assert samples(tmp_path, "net", "0=output").dtype == np.float32
    kept = chunks(tmp_path, "net", "0=input")
    assert [len(rows) for _, rows in kept] == [2, 2]
    marks = np.concatenate([marks for marks, _ in kept])
    assert marks["forward"].tolist() == [0, 0, 0, 1]
    assert marks["training"].tolist() == [True, True, True, False]


def test_the_document_says_what_was_kept(tmp_path: Path) -> None:
    with start(tmp_path):
        tracked = ProvenanceTrackedModel("net", network(), context="training", chunk_size=8)
        for _ in range(3):
            tracked(torch.ones(5, 3))

    entities = document(tmp_path)["entity"]
    folder = entities["artifact/Training/net/activations"]
    assert folder["dcterms:identifier"] == "artifacts/net"
    assert folder["provml:forward_passes"] == 3
    assert folder["provml:layers"] == 2
    assert folder["provml:files"] == 4
    model = entities["model/Training/net/activations"]
    assert model["provml:activations"] == "artifacts/net"
    assert model["provml:total_params"] == 3 * 4 + 4 + 4 * 2 + 2
    assert notes(tmp_path) == []


def test_halves_keep_their_type_and_bfloat16_loses_nothing(tmp_path: Path) -> None:
    with start(tmp_path):
        for label, dtype in (("half", torch.float16), ("brain", torch.bfloat16)):
            net = nn.Linear(1, 1, bias=False).to(dtype)
            with torch.no_grad():
                net.weight.fill_(3.0)
                ProvenanceTrackedModel(label, net)(torch.tensor([[1e4]], dtype=dtype))

    assert samples(tmp_path, "half", "root=output").dtype == np.float16
    kept = samples(tmp_path, "brain", "root=output")
    assert kept.dtype == np.float32
    assert kept.item() == (torch.tensor(1e4, dtype=torch.bfloat16) * 3).item()


def test_more_tensors_than_one_have_files_of_their_own(tmp_path: Path) -> None:
    torch.manual_seed(1)
    with start(tmp_path), torch.no_grad():
        tracked = ProvenanceTrackedModel("net", nn.LSTM(2, 3, batch_first=True))
        output, (hidden, cell) = tracked(torch.ones(4, 5, 2))

    assert np.array_equal(samples(tmp_path, "net", "root=output"), output)
    assert np.array_equal(samples(tmp_path, "net", "root=output.1"), hidden)
    assert np.array_equal(samples(tmp_path, "net", "root=output.2"), cell)


def test_the_layers_to_follow_can_be_named(tmp_path: Path) -> None:
    with start(tmp_path):
        ProvenanceTrackedModel("net", network(), layers=[nn.ReLU])(torch.ones(1, 3))
    names = sorted(path.name for path in (tmp_path / "digits_0/artifacts/net").iterdir())
    assert names == ["1=input.npys", "1=output.npys"]

    with pytest.raises(ConfigurationError, match="has no layers to follow"):
        ProvenanceTrackedModel("net", nn.ReLU())
    with pytest.raises(ConfigurationError, match="model=dict is not a"):
        ProvenanceTrackedModel("net", {})
    with pytest.raises(ConfigurationError, match="chunk_size=0 must"):
        ProvenanceTrackedModel("net", network(), chunk_size=0)


@pytest.mark.gpu
def test_tensors_on_a_gpu_are_copied_as_they_were(tmp_path: Path) -> None:
    net = nn.Linear(64, 64, bias=False).cuda()
    with torch.no_grad():
        net.weight.copy_(torch.eye(64))
    with start(tmp_path):
        tracked = ProvenanceTrackedModel("net", net)
        for number in range(50):
            batch = torch.full((8, 64), float(number), device="cuda")
            tracked(batch)
            batch.zero_()

    taken = samples(tmp_path, "net", "root=output")
    assert taken[::8, 0].tolist() == [float(number) for number in range(50)]
