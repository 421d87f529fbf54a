"""Batches and arguments as trees: of mappings, sequences and dataclasses, with leaves."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping
from dataclasses import fields, is_dataclass
from typing import Any

__all__ = ["is_sequence", "leaves", "map_leaves", "members", "signature"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def members(tree: Any) -> dict[str, Any] | None:
    """Return the members of a mapping, dataclass or named tuple by name; None of anything else."""
    if isinstance(tree, Mapping):
        return dict(tree) if all(isinstance(key, str) for key in tree) else None
    if is_dataclass(tree) and not isinstance(tree, type):
        return {field.name: getattr(tree, field.name) for field in fields(tree)}
    if is_sequence(tree) and hasattr(tree, "_fields"):
        return dict(zip(tree._fields, tree, strict=True))
    return None


def is_sequence(tree: Any) -> bool:
    """Return whether it is a list or tuple; a packed sequence of torch is one value."""
    return isinstance(tree, (list, tuple)) and not _is_packed(tree)


def map_leaves(change: Callable[[Any], Any], tree: Any) -> Any:
    """Return the same tree with other leaves; the tree itself stays as it is."""
    if isinstance(tree, MutableMapping):
        copied = copy.copy(tree)
        for key, value in tree.items():
            copied[key] = map_leaves(change, value)
        return copied
    if isinstance(tree, Mapping):
        return {key: map_leaves(change, value) for key, value in tree.items()}
    if is_sequence(tree):
        changed = [map_leaves(change, value) for value in tree]
        if hasattr(tree, "_fields"):
            return type(tree)(*changed)
        return tuple(changed) if isinstance(tree, tuple) else changed
    if is_dataclass(tree) and not isinstance(tree, type):
        twin: Any = copy.copy(tree)
        for field in fields(tree):
            # As dataclasses do: a frozen one takes it in no other way.
            object.__setattr__(twin, field.name, map_leaves(change, getattr(tree, field.name)))
        return twin
    return change(tree)


def leaves(tree: Any) -> Iterator[Any]:
    """Yield what is no mapping, sequence or dataclass."""
    inner = members(tree)
    if inner is not None:
        children: Any = inner.values()
    elif isinstance(tree, Mapping):
        children = tree.values()
    elif is_sequence(tree):
        children = tree
    else:
        yield tree
        return
    for child in children:
        yield from leaves(child)


def signature(tree: Any) -> Hashable:
    """Return what two trees have in common whose tensors differ in their values alone.

    Raises:
        TypeError: There is a leaf in it of which that cannot be told.
    """
    import torch

    if isinstance(tree, torch.Tensor):
        if tree.is_nested or tree.layout is not torch.strided:
            raise TypeError(f"the work on a {tree.layout} tensor depends on more than its shape")
        return tree.shape, tree.dtype
    kind = type(tree)
    if kind in {tuple, list}:
        return kind, *map(signature, tree)
    if isinstance(tree, _PLAIN):
        return kind, tree
    inner = members(tree)
    if inner is not None:
        return kind, *((name, signature(value)) for name, value in inner.items())
    if is_sequence(tree):
        return kind, *map(signature, tree)
    raise TypeError(f"what a {kind.__qualname__} holds is not known")


def _is_packed(tree: Any) -> bool:
    return type(tree).__name__ == "PackedSequence" and hasattr(tree, "batch_sizes")
