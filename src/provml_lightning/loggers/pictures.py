"""Arrays of pixels as pictures."""

from __future__ import annotations

from typing import Any

from provml_lightning.capture.foreign import is_a

__all__ = ["picture"]

_CHANNELS = (1, 3, 4)


def picture(item: Any) -> Any:
    """Return pixels as a Pillow image; what is none, or all of it without Pillow, as it was given.

    Args:
        item: An array of shape [height, width] or [height, width, channels], or a tensor of shape
            [height, width] or [channels, height, width], with one, three or four channels. Whole
            numbers are 0 to 255, other numbers 0 to 1.
    """
    if not is_a(item, "numpy.ndarray", "torch.Tensor"):
        return item
    try:
        from PIL import Image
    except ImportError:
        return item
    pixels = _bytes(_channels_last(item))
    return item if pixels is None else Image.fromarray(pixels)


def _channels_last(item: Any) -> Any:
    if not is_a(item, "torch.Tensor"):
        return item
    tensor = item.detach().cpu()
    # NumPy has no bfloat16 and no numbers of eight bits.
    array = (tensor.float() if tensor.is_floating_point() else tensor).numpy()
    return array.transpose(1, 2, 0) if array.ndim == 3 and array.shape[0] in _CHANNELS else array  # noqa: PLR2004


def _bytes(array: Any) -> Any:
    """Return an array of bytes that Pillow takes, None where the numbers are no pixels."""
    import numpy as np

    pixels = array[:, :, 0] if array.ndim == 3 and array.shape[2] == 1 else array  # noqa: PLR2004
    grey_or_colour = pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in _CHANNELS)  # noqa: PLR2004
    if not grey_or_colour or not pixels.size or pixels.dtype.kind not in "buif":
        return None
    most = 255 if pixels.dtype.kind in "ui" else 1
    if not (pixels.min() >= 0 and pixels.max() <= most):
        return None
    return pixels.astype(np.uint8) if most != 1 else np.rint(pixels * 255.0).astype(np.uint8)
