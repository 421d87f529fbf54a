from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from provml_lightning.capture.torch_objects import model_facts, model_layers, save_state
from provml_lightning.errors import RecordError, StorageError

if TYPE_CHECKING:
    from pathlib import Path


class Tied(nn.Module):
    """An embedding and a head with the same weights, and a weight of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.embedding = nn.Embedding(7, 5)
        self.head = nn.Linear(5, 7, bias=False)
        self.head.weight = self.embedding.weight


def test_a_linear_layer_has_its_true_size() -> None:
    assert model_facts(nn.Linear(10, 10)) == {
        "class": "torch.nn.modules.linear.Linear",
        "total_params": 110,
        "trainable_params": 110,
        "parameter_bytes": 440,
        "buffer_bytes": 0,
        "gradient_bytes": 440,
        "memory_mb": 0.00044,
        "dtypes": "float32",
        "devices": "cpu",
        "modules": 1,
        "training": True,
    }


def test_half_precision_halves_the_bytes() -> None:
    facts = model_facts(nn.Linear(10, 10).half().eval())

    assert facts["total_params"] == 110
    assert facts["parameter_bytes"] == 220
    assert facts["gradient_bytes"] == 220
    assert facts["dtypes"] == "float16"
    assert facts["training"] is False


def test_frozen_parameters_need_no_gradient_and_buffers_count() -> None:
    model = nn.Sequential(nn.Linear(10, 10), nn.BatchNorm1d(10))
    model[0].requires_grad_(requires_grad=False)

    facts = model_facts(model)

    assert facts["total_params"] == 130
    assert facts["trainable_params"] == 20
    assert facts["gradient_bytes"] == 80
    assert facts["buffer_bytes"] == 88  # mean and variance of 10 floats, one 64-bit count
    assert facts["memory_mb"] == pytest.approx(608e-6)
    assert facts["dtypes"] == "float32, int64"
    assert facts["modules"] == 3


def test_tied_weights_count_once() -> None:
    facts = model_facts(Tied())

    assert facts["total_params"] == 38
    assert facts["parameter_bytes"] == 152


def test_a_model_on_meta_has_its_size_and_place() -> None:
    with torch.device("meta"):
        model = nn.Linear(10, 10)

    facts = model_facts(model)

    assert facts["parameter_bytes"] == 440
    assert facts["devices"] == "meta"


def test_of_a_lazy_model_the_sizes_are_absent() -> None:
    facts = model_facts(nn.Sequential(nn.LazyLinear(3), nn.Linear(3, 2)))

    assert facts["uninitialized_params"] == 2
    assert facts["modules"] == 3
    assert not {"total_params", "parameter_bytes", "gradient_bytes", "memory_mb"} & facts.keys()


def test_anything_else_is_known_by_its_class() -> None:
    class Raises:
        def parameters(self) -> list[Any]:
            raise RuntimeError

    assert model_facts(LogisticRegression()) == {
        "class": "sklearn.linear_model._logistic.LogisticRegression"
    }
    assert list(model_facts(Raises())) == ["class"]
    assert model_facts(None) == {"class": "NoneType"}
    assert model_facts(nn.Linear) == {"class": "type"}
    assert model_layers(LogisticRegression()) == model_layers(nn.Linear) == []


def test_an_object_with_parameters_is_measured() -> None:
    class Pair:
        def parameters(self) -> list[torch.Tensor]:
            shared = torch.zeros(4, dtype=torch.float64)
            return [shared, shared]

    facts = model_facts(Pair())

    assert facts["total_params"] == 4
    assert facts["parameter_bytes"] == 32


def test_layers_list_sizes_settings_and_own_parameters() -> None:
    layers = model_layers(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Linear(4, 2).half()))

    assert json.loads(json.dumps(layers)) == layers
    assert [layer["name"] for layer in layers] == ["", "0", "1"]
    assert layers[0]["parameters"] == []
    assert layers[1]["settings"]["in_channels"] == 3
    assert layers[1]["settings"]["kernel_size"] == [3, 3]
    assert layers[2] == {
        "name": "1",
        "type": "torch.nn.modules.linear.Linear",
        "trainable": True,
        "description": "in_features=4, out_features=2, bias=True",
        "settings": {"in_features": 4, "out_features": 2},
        "parameters": [
            {
                "name": "weight",
                "shape": [2, 4],
                "dtype": "float16",
                "count": 8,
                "trainable": True,
            },
            {"name": "bias", "shape": [2], "dtype": "float16", "count": 2, "trainable": True},
        ],
    }


def test_layers_show_parameters_beside_children_and_tied_ones() -> None:
    top, embedding, head = model_layers(Tied())

    assert [parameter["name"] for parameter in top["parameters"]] == ["scale"]
    assert "tied_to" not in embedding["parameters"][0]
    assert head["parameters"][0]["tied_to"] == "embedding.weight"


def test_lazy_layers_do_not_know_their_shapes() -> None:
    (layer,) = model_layers(nn.LazyLinear(3))

    assert layer["parameters"][0]["shape"] is None
    assert layer["parameters"][0]["count"] is None
    assert json.dumps(layer)


@pytest.mark.parametrize(
    "model",
    [nn.LSTM(3, 4, 2), nn.MultiheadAttention(8, 2), nn.Hardtanh(0, float("inf")), nn.LayerNorm(3)],
    ids=lambda model: type(model).__name__,
)
def test_every_layer_is_json(model: nn.Module) -> None:
    assert json.loads(json.dumps(model_layers(model), allow_nan=False)) == model_layers(model)


def test_a_saved_state_loads_without_pickle(tmp_path: Path) -> None:
    model = Tied()
    save_state(model, tmp_path / "new" / "weights.pt")

    state = torch.load(tmp_path / "new" / "weights.pt", weights_only=True)

    assert list(state) == ["scale", "embedding.weight", "head.weight"]
    assert torch.equal(state["head.weight"], model.head.weight)
    Tied().load_state_dict(state)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["weights.pt"]


def test_equal_weights_are_equal_bytes_under_any_name(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    save_state(model, tmp_path / "a.pt")
    save_state(model, tmp_path / "b.ckpt")

    assert (tmp_path / "a.pt").read_bytes() == (tmp_path / "b.ckpt").read_bytes()


def test_a_second_version_replaces_the_first(tmp_path: Path) -> None:
    save_state(nn.Linear(3, 2), tmp_path / "a.pt")
    save_state(nn.Linear(5, 2), tmp_path / "a.pt")

    assert torch.load(tmp_path / "a.pt", weights_only=True)["weight"].shape == (2, 5)


def test_wrappers_are_taken_off_before_saving(tmp_path: Path) -> None:
    inner = nn.Linear(3, 2)
    wrapped = torch.compile(nn.DataParallel(inner), backend="eager")
    save_state(wrapped, tmp_path / "a.pt")

    assert list(torch.load(tmp_path / "a.pt", weights_only=True)) == ["weight", "bias"]
    assert model_facts(wrapped)["class"] == "torch.nn.modules.linear.Linear"
    assert [layer["name"] for layer in model_layers(wrapped)] == [""]


def test_a_model_whose_own_part_is_called_module_is_no_wrapper(tmp_path: Path) -> None:
    model = nn.Sequential()
    model.add_module("module", nn.Linear(3, 2))
    save_state(model, tmp_path / "a.pt")

    assert list(torch.load(tmp_path / "a.pt", weights_only=True)) == [
        "module.weight",
        "module.bias",
    ]


def test_the_model_in_a_process_group_is_saved_without_its_wrapper(tmp_path: Path) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1
    )
    try:
        save_state(nn.parallel.DistributedDataParallel(nn.Linear(3, 2)), tmp_path / "a.pt")
    finally:
        torch.distributed.destroy_process_group()

    assert list(torch.load(tmp_path / "a.pt", weights_only=True)) == ["weight", "bias"]


def test_the_state_of_an_optimizer_is_saved_too(tmp_path: Path) -> None:
    save_state(torch.optim.Adam(nn.Linear(3, 2).parameters(), lr=0.5), tmp_path / "a.pt")

    assert torch.load(tmp_path / "a.pt", weights_only=True)["param_groups"][0]["lr"] == 0.5


@pytest.mark.parametrize("model", [LogisticRegression(), nn.Linear, 3, None])
def test_what_has_no_state_is_refused_with_what_to_do(tmp_path: Path, model: Any) -> None:
    with pytest.raises(RecordError, match=r"has no state_dict\(\) to save.*log_artifact"):
        save_state(model, tmp_path / "a.pt")
    assert list(tmp_path.iterdir()) == []


def test_a_state_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    class Odd(nn.Linear):
        def get_extra_state(self) -> Any:
            return lambda: None

    (tmp_path / "file").write_text("")

    with pytest.raises(RecordError, match="holds something that torch cannot write"):
        save_state(Odd(3, 2), tmp_path / "a.pt")
    with pytest.raises(StorageError, match="free space"):
        save_state(nn.Linear(3, 2), tmp_path / "file" / "a.pt")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


class Shy(nn.Linear):
    def extra_repr(self) -> str:
        raise AttributeError("not before the first batch")


def test_a_layer_that_cannot_describe_itself_is_told_without_that() -> None:
    _, shy = model_layers(nn.Sequential(Shy(4, 2)))
    assert shy["description"] is None
    assert [parameter["shape"] for parameter in shy["parameters"]] == [[2, 4], [2]]
