from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from PIL import Image
from torch import nn

from provml_lightning.capture.payloads import write_value

if TYPE_CHECKING:
    from pathlib import Path

mpl.use("agg")


def test_an_array_is_written_without_pickle(tmp_path: Path) -> None:
    path = write_value(np.arange(3.0), tmp_path, "a")

    assert path.name == "a.npy"
    assert np.load(path, allow_pickle=False).tolist() == [0, 1, 2]


def test_an_array_of_objects_is_kept_as_its_text(tmp_path: Path) -> None:
    path = write_value(np.array([{}, None], dtype=object), tmp_path, "a")

    assert path.read_text() == "array([{}, None], dtype=object)"
    assert list(tmp_path.iterdir()) == [path]


def test_a_numpy_number_is_json(tmp_path: Path) -> None:
    assert write_value(np.float64(0.5), tmp_path, "a").read_text() == "0.5"
    assert write_value(np.float32(0.5), tmp_path, "b").read_text() == "0.5"


def test_a_tensor_is_written_plain_and_without_its_surroundings(tmp_path: Path) -> None:
    weights = nn.Parameter(torch.ones(1000, 1000))

    path = write_value(weights[:2, :2], tmp_path, "w")

    loaded = torch.load(path, weights_only=True)
    assert path.name == "w.pt"
    assert loaded.tolist() == [[1, 1], [1, 1]]
    assert not loaded.requires_grad
    assert path.stat().st_size < 4096


def test_sparse_tensors_are_written_and_those_without_values_described(tmp_path: Path) -> None:
    sparse = write_value(torch.eye(3).to_sparse(), tmp_path, "sparse")
    meta = write_value(torch.zeros(2, device="meta"), tmp_path, "meta")

    assert torch.equal(torch.load(sparse, weights_only=True).to_dense(), torch.eye(3))
    assert meta.read_text() == (
        "tensor(..., device='meta', size=(2,)), shape (2,), dtype torch.float32"
    )


def test_an_image_is_a_png_and_in_a_mode_without_png_a_tiff(tmp_path: Path) -> None:
    colour = write_value(Image.new("RGB", (2, 3), "red"), tmp_path, "image")
    depth = write_value(Image.new("F", (2, 3), 0.5), tmp_path, "depth")

    with Image.open(colour) as image:
        assert (image.format, image.size, image.getpixel((0, 0))) == ("PNG", (2, 3), (255, 0, 0))
    with Image.open(depth) as image:
        assert (image.format, image.getpixel((0, 0))) == ("TIFF", 0.5)


def test_a_figure_is_a_png(tmp_path: Path) -> None:
    figure = Figure(figsize=(2, 1), dpi=100)
    figure.add_subplot().plot([1, 2])

    with Image.open(write_value(figure, tmp_path, "plot")) as image:
        assert (image.format, image.size) == ("PNG", (200, 100))


def test_a_table_is_a_csv_with_its_index(tmp_path: Path) -> None:
    table = pd.DataFrame({"loss": [0.5, 0.25]}, index=["a", "b"])

    path = write_value(table, tmp_path, "table")

    assert path.name == "table.csv"
    assert path.read_bytes() == b",loss\na,0.5\nb,0.25\n"
