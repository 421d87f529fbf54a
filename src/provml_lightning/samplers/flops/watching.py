"""Counting while a forward pass runs: torch's counter, and a watch on what it cannot count."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from math import prod
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from provml_lightning.samplers.flops.counts import FLOP, Count
from provml_lightning.samplers.flops.formulas import formulas, has_matmul_work, recurrent_flops

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

__all__ = ["counted"]


def counted(call: Callable[[], Any], method: str, *, weightless: bool = False) -> Count:
    """Return what a call computes.

    Args:
        call: Runs a forward pass.
        method: What to call the way it is counted.
        weightless: All tensors are on the meta device; so are those that the call makes. Recurrent
            layers are then counted at once, not step by step.
    """
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    watch, functions = _watch(), _functions(weightless=weightless)
    counter = FlopCounterMode(display=False, custom_mapping=formulas())
    with ExitStack() as contexts:
        contexts.enter_context(torch.no_grad())
        contexts.enter_context(_no_fast_path())
        if weightless:
            contexts.enter_context(torch.device("meta"))
        # The counter splits operations into smaller ones; the watch below it sees what is left.
        for context in (watch, counter, functions):
            contexts.enter_context(context)
        call()
    known = {str(operation) for operation in counter.flop_registry}
    bare = {name for name in watch.operations - known if has_matmul_work(name)}
    return Count(
        counter.get_total_flops() + functions.flops,
        FLOP,
        method,
        missing=frozenset(bare | watch.sparse),
        by_values=watch.by_values or functions.by_values,
    )


@contextmanager
def _no_fast_path() -> Iterator[None]:
    """Let torch's encoder layers call attention by its parts, which are counted."""
    from torch.backends import mha

    before = mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        mha.set_fastpath_enabled(before)


def _watch() -> Any:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    depends = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        """Sees the operations that run."""

        supports_higher_order_operators = True

        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.operations: set[str] = set()
            self.sparse: set[str] = set()
            self.by_values = False

        @override
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            name = str(func).rpartition(".")[0] or str(func)
            self.operations.add(name)
            if depends.intersection(getattr(func, "tags", ())):
                self.by_values |= name != "aten.index" or _has_mask(args)
            tensors = [each for each in args if isinstance(each, torch.Tensor)]
            if has_matmul_work(name) and any(each.layout != torch.strided for each in tensors):
                self.sparse.add(f"{name} of a sparse tensor")
            return func(*args, **(kwargs or {}))

    return Watch()


def _has_mask(args: Any) -> bool:
    import torch

    masks = (torch.bool, torch.uint8)
    return any(index is not None and index.dtype in masks for index in args[1])


def _functions(*, weightless: bool) -> Any:
    import torch
    from torch.overrides import TorchFunctionMode

    layers = {torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu} if weightless else set()
    readers = {torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__}

    class Functions(TorchFunctionMode):
        """Sees the calls of torch, before they become operations."""

        def __init__(self) -> None:
            super().__init__()
            self.flops = 0
            self.by_values = False

        @override
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func in layers:
                return self.layer(*args)
            self.by_values |= func in readers
            return func(*args, **(kwargs or {}))

        def layer(self, rows: Tensor, *rest: Any) -> tuple[Tensor, ...]:
            """Count a recurrent layer and return what it would, without values."""
            packed = not isinstance(rest[2], bool)  # then the sizes of its batches come first
            states, weights, *_ = rest[packed:]
            both_ways = rest[-1] if packed else rest[-2]
            number = prod(rows.shape[:-1])
            self.flops += recurrent_flops(number, [each.shape for each in weights])
            states = [states] if isinstance(states, torch.Tensor) else states
            width = states[0].shape[-1] * (2 if both_ways else 1)
            output = rows.new_empty(*rows.shape[:-1], width)
            return output, *(torch.empty_like(state) for state in states)

    return Functions()
