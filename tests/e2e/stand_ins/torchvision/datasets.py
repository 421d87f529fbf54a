"""MNIST's place is taken by scikit-learn's digits: nothing is downloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
from torch.utils.data import Dataset

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MNIST"]


class MNIST(Dataset[tuple[Any, int]]):
    """Digits of 28 x 28 pixels: 640 to train and 128 to test, as many as a script takes."""

    def __init__(
        self, root: str, *, train: bool, download: bool, transform: Callable[[Any], Any]
    ) -> None:
        assert (root, download) == ("./data", True)
        digits = load_digits()
        part = slice(640) if train else slice(640, 768)
        pixels = (digits.images[part] * 255 / 16).astype(np.uint8)
        self.images = [Image.fromarray(image).resize((28, 28)) for image in pixels]
        self.targets = digits.target[part]
        self.transform = transform

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.transform(self.images[index]), int(self.targets[index])
