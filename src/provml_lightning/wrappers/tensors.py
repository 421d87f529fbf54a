"""Tensors copied to the host without stopping the device, and read there without loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

__all__ = ["host_copy", "marked", "tensors_in", "to_array"]


def host_copy(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy on the host; of a CUDA tensor it is whole once :func:`marked` says so."""
    pinned = tensor.is_cuda
    copy = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=pinned)
    return copy.copy_(tensor.detach(), non_blocking=pinned)


def marked(devices: set[torch.device]) -> list[Any]:
    """Return an event a CUDA device: once they are over, all copies until now are whole."""
    return [
        torch.cuda.current_stream(device).record_event()
        for device in devices
        if device.type == "cuda"
    ]


def to_array(tensor: torch.Tensor) -> np.ndarray:
    """Return a host tensor as an array of samples, its first dimension.

    What NumPy has no type for, such as bfloat16, becomes float32, which holds every value of it.
    """
    batch = tensor.reshape(1) if tensor.dim() == 0 else tensor
    try:
        array: np.ndarray = batch.numpy()
    except TypeError:
        array = batch.to(torch.float32).numpy()
    return array


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    """Return the tensors in nested tuples, lists and dictionaries, in order."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, (tuple, list)):
        for value in values:
            yield from tensors_in(value)
    elif isinstance(values, dict):
        for value in values.values():
            yield from tensors_in(value)
