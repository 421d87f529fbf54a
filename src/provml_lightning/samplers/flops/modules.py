"""What can be counted: a module of torch, out of the wrappers that only pass it on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from provml_lightning.errors import SamplerUnavailableError

if TYPE_CHECKING:
    from torch import nn

__all__ = ["bare", "is_scripted", "is_sharded"]

_WRAPPERS = {
    "torch.nn.parallel.DistributedDataParallel": "module",
    "torch.nn.parallel.DataParallel": "module",
    "torch._dynamo.OptimizedModule": "_orig_mod",
    "lightning.fabric.wrappers._FabricModule": "module",
    "lightning_fabric.wrappers._FabricModule": "module",
    "provml_lightning.wrappers.transparent.Transparent": "unwrapped",
}
_SHARDED = (
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.FSDPModule",
)
_SHARDED_TENSOR = "torch.distributed.tensor.DTensor"


def bare(model: Any) -> nn.Module:
    """Return the module inside DistributedDataParallel, ``torch.compile`` and our own wrappers.

    Raises:
        SamplerUnavailableError: It is no module of torch.
    """
    from torch import nn

    for wrapper, inner in _WRAPPERS.items():
        if _is_a(model, wrapper):
            return bare(getattr(model, inner))
    if not isinstance(model, nn.Module):
        raise SamplerUnavailableError(
            f"the FLOPs of a {type(model).__qualname__} cannot be counted; give a torch.nn.Module,"
            " such as the LightningModule itself"
        )
    return model


def is_sharded(module: nn.Module) -> bool:
    """Return whether its forward pass needs the other processes."""
    return any(_is_a(each, name) for each in module.modules() for name in _SHARDED) or any(
        _is_a(weights, _SHARDED_TENSOR) for weights in module.parameters()
    )


def is_scripted(module: nn.Module) -> bool:
    """Return whether a part of it is compiled by TorchScript, which keeps weights of its own."""
    from torch import jit

    return any(isinstance(each, jit.ScriptModule) for each in module.modules())


def _is_a(value: Any, name: str) -> bool:
    """Return whether it is an instance of a class that may never have been imported."""
    module, _, kind = name.rpartition(".")
    found = getattr(sys.modules.get(module), kind, None)
    return isinstance(found, type) and isinstance(value, found)
