"""The work of operations: formulas that torch's own counter lacks, and what has none.

One multiply-add is two FLOPs; only what multiplies matrices counts, as in torch's counter.
"""

from __future__ import annotations

import re
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Shape = Sequence[int]

__all__ = ["formulas", "has_matmul_work", "recurrent_flops"]

# Words in the names of operations whose work is that of matrix products, or unknown.
_MATMUL_WORDS = re.compile(
    r"(?:^|_)(?:addbmm|addmm|addmv|attention|baddbmm|bmm|cdist|cholesky|conv\w*|dot|einsum|fft"
    r"|gru|linalg|linear|lstm|lu|matmul|mha|mm|multihead|mv|pdist|qr|rnn|svd|trilinear|vdot)(?:_|$)"
)
_LITTLE_WORK = re.compile(
    r"linalg_(?:vector_norm|check_errors|cross|diagonal)|thnn_fused_|flatten_weight|linear\dd"
    r"|upsample_|_weight_norm"
)
_KNOWN_NAMESPACES = {"aten", "c10d", "_c10d_functional", "prim", "prims", "profiler", "debugprims"}


@cache
def has_matmul_work(operation: str) -> bool:
    """Return whether an operation may multiply matrices.

    Args:
        operation: Its name in torch, such as ``"aten.mm"``; of a library of the user's nothing
            is known, so it may.
    """
    namespace, _, name = operation.partition(".")
    if namespace not in _KNOWN_NAMESPACES:
        return True
    if namespace != "aten" or _LITTLE_WORK.search(name):
        return False
    return _MATMUL_WORDS.search(name) is not None


@cache
def formulas() -> dict[Any, Callable[..., int]]:
    """Return a formula over shapes for each operation that torch's counter has none for.

    Source:
        torch 2.13: attention on the CPU, pytorch #195460; recurrent layers, fvcore #98.
    """
    import torch
    from torch.utils.flop_counter import flop_registry

    aten = torch.ops.aten
    known: dict[Callable[..., int], tuple[str, ...]] = {
        _attention: (
            "_scaled_dot_product_flash_attention_for_cpu",
            "_scaled_dot_product_attention_math_for_mps",
            "_scaled_dot_product_fused_attention_overrideable",
            "_scaled_dot_product_cudnn_attention",
        ),
        _cpu_layer: ("mkldnn_rnn_layer",),
        _gpu_layers: ("_cudnn_rnn", "miopen_rnn"),
        _matrix_vector: ("mv", "dot", "vdot"),
        _add_matrix_vector: ("addmv",),
        _add_matrix_matrix: ("_addmm_activation",),
    }
    found = {
        getattr(aten, name): formula
        for formula, names in known.items()
        for name in names
        if hasattr(aten, name)
    }
    return {packet: formula for packet, formula in found.items() if packet not in flop_registry}


def recurrent_flops(rows: int, weights: Iterable[Shape]) -> int:
    """Return the work of recurrent layers: every matrix is applied once to every row.

    Args:
        rows: Time steps times samples; of a packed sequence the steps that there are [1].
        weights: Shapes of weights and biases.
    """
    return 2 * rows * sum(prod(shape) for shape in weights if len(shape) == 2)  # noqa: PLR2004


def _attention(query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    *batch, rows, width = query
    return 2 * prod(batch) * rows * key[-2] * (width + value[-1])


def _cpu_layer(rows: Shape, *weights: Any, **_: Any) -> int:
    return recurrent_flops(prod(rows[:-1]), weights[:4])


def _gpu_layers(rows: Shape, weights: Sequence[Shape], *_: Any, **__: Any) -> int:
    return recurrent_flops(prod(rows[:-1]), weights)


def _matrix_vector(matrix: Shape, *_: Any, **__: Any) -> int:
    return 2 * prod(matrix)


def _add_matrix_vector(_: Shape, matrix: Shape, *__: Any, **___: Any) -> int:
    return 2 * prod(matrix)


def _add_matrix_matrix(_: Shape, left: Shape, right: Shape, *__: Any, **___: Any) -> int:
    return 2 * prod(left) * right[-1]
