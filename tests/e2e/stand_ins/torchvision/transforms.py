"""The transforms that the documents use, with torchvision's own representations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image, ImageOps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Compose", "RandomHorizontalFlip", "RandomRotation", "RandomVerticalFlip", "ToTensor"]


class Compose:
    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, image: Any) -> Any:
        for transform in self.transforms:
            image = transform(image)
        return image

    def __repr__(self) -> str:
        return "\n    ".join(["Compose(", *map(repr, self.transforms)]) + "\n)"


class RandomRotation:
    def __init__(self, degrees: float) -> None:
        self.degrees = float(degrees)

    def __call__(self, image: Image.Image) -> Image.Image:
        return image.rotate(float(torch.empty(1).uniform_(-self.degrees, self.degrees)))

    def __repr__(self) -> str:
        degrees = [-self.degrees, self.degrees]
        return f"RandomRotation(degrees={degrees}, interpolation=nearest, expand=False, fill=0)"


class RandomHorizontalFlip:
    def __call__(self, image: Image.Image) -> Image.Image:
        return ImageOps.mirror(image) if torch.rand(1) < 0.5 else image

    def __repr__(self) -> str:
        return "RandomHorizontalFlip(p=0.5)"


class RandomVerticalFlip:
    def __call__(self, image: Image.Image) -> Image.Image:
        return ImageOps.flip(image) if torch.rand(1) < 0.5 else image

    def __repr__(self) -> str:
        return "RandomVerticalFlip(p=0.5)"


class ToTensor:
    def __call__(self, image: Image.Image) -> torch.Tensor:
        return torch.from_numpy(np.asarray(image, dtype=np.float32) / 255)[None]

    def __repr__(self) -> str:
        return "ToTensor()"
