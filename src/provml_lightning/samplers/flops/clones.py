"""A copy of a module with all of its structure and none of its weights.

Source:
    Deep copies look into their memo first, so that a memo that knows the weights copies none.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from typing_extensions import override

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

__all__ = ["HOOKS", "twin_of", "weightless"]

# Whoever hooked into the user's module hooked into that one.
HOOKS = (
    "_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_hooks_always_called",
    "_forward_hooks_with_kwargs", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
)  # fmt: skip
_OTHER_HOOKS = ("_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
                "_load_state_dict_post_hooks")  # fmt: skip
_BELONGS_ELSEWHERE = ("_trainer", "_fabric", "_compiled_call_impl")


def weightless(module: nn.Module) -> nn.Module:
    """Return a copy whose tensors are on the meta device; nothing of the module is changed.

    Tied weights stay tied. Hooks, and what ties the module to a Trainer, are left out; data sets
    are shared.
    """
    import torch
    from torch import nn
    from torch.overrides import TorchFunctionMode

    class Weightless(TorchFunctionMode):
        """Copies a tensor as its shape."""

        @override
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is torch.Tensor.__deepcopy__:
                return _shape_of(args[0])
            return func(*args, **(kwargs or {}))

    memo = _memo(module)
    with Weightless():
        clone = copy.deepcopy(module, memo)
    for each in clone.modules():
        vars(each).pop("_compiled_call_impl", None)
        if isinstance(each, nn.SyncBatchNorm):
            each.training = False  # else it waits for the other processes
    return clone.to("meta")  # where a LightningModule keeps its device in mind too


def _memo(module: nn.Module) -> dict[int, Any]:
    from torch import nn

    memo: dict[int, Any] = {}
    for each in module.modules():
        own = vars(each)
        for weights in own["_parameters"].values():
            if weights is not None:
                memo[id(weights)] = nn.Parameter(
                    _shape_of(weights), requires_grad=weights.requires_grad
                )
        for name in (*HOOKS, *_OTHER_HOOKS):
            if name in own:
                memo[id(own[name])] = type(own[name])()
        memo |= {id(own[name]): None for name in _BELONGS_ELSEWHERE if name in own}
        memo |= {
            id(value): twin for value in own.values() if (twin := _stand_in(value)) is not None
        }
    return memo


def _stand_in(value: Any) -> Any:
    """Return what stands for something that is shared, or that torch cannot copy here."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    if isinstance(value, (DataLoader, Dataset)):
        return value
    return twin_of(value) if isinstance(value, torch.Generator) else None


def twin_of(generator: Generator) -> Generator:
    """Return a generator that will give the same random numbers."""
    import torch

    twin = torch.Generator(generator.device)
    twin.set_state(generator.get_state())
    return twin


def _shape_of(tensor: Tensor) -> Tensor:
    import torch

    return torch.empty_like(tensor.detach(), device="meta")
