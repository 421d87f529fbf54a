"""What must be afterwards as it was before: random numbers, and the module that is run."""

from __future__ import annotations

import copy
import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from provml_lightning.samplers.flops.clones import HOOKS, twin_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch import Tensor, nn

__all__ = ["same_chance", "same_module"]


@contextmanager
def same_chance(tensors: Iterable[Tensor] = ()) -> Iterator[None]:
    """Put back the random numbers of Python, NumPy and torch, and of the tensors' GPUs."""
    import numpy as np
    import torch

    gpus = {each.device.index for each in tensors if each.is_cuda}
    own, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002  the user's, global
    try:
        with torch.random.fork_rng(sorted(gpus)):
            yield
    finally:
        random.setstate(own)
        np.random.set_state(numpys)  # noqa: NPY002


@contextmanager
def same_module(module: nn.Module) -> Iterator[None]:
    """Let a module run without its hooks, on copies of its buffers and plain attributes.

    Its weights are shared. Not even the version of a buffer changes, so that a graph that waits
    for its backward pass stays valid.
    """
    kept = [(vars(each), dict(vars(each))) for each in module.modules()]
    copies: dict[int, Any] = {}
    for own, before in kept:
        own.update({name: _stand_in(name, value, copies) for name, value in before.items()})
        own.pop("_compiled_call_impl", None)
    _part_from_others(module)
    try:
        yield
    finally:
        for own, before in kept:
            for name in own.keys() - before.keys():
                del own[name]
            own.update(before)


def _stand_in(name: str, value: Any, copies: dict[int, Any]) -> Any:
    import torch

    if name in HOOKS:
        return type(value)()
    if name == "_buffers":
        return {key: _stand_in(key, buffer, copies) for key, buffer in value.items()}
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        return copies.setdefault(id(value), value.detach().clone())
    if isinstance(value, torch.Generator):
        return copies.setdefault(id(value), twin_of(value))
    return copy.copy(value) if isinstance(value, (list, dict, set)) else value


def _part_from_others(module: nn.Module) -> None:
    from torch import nn

    for each in module.modules():
        if isinstance(each, nn.SyncBatchNorm):
            each.training = False  # else it waits for the other processes
