"""What was counted already, by module, its structure, and the shapes that went into it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable

    from torch import nn

    from provml_lightning.samplers.flops.counts import Count

    Outcomes = dict[Hashable, Count | str]

__all__ = ["outcomes_of"]

_MOST = 4096
_PLAIN = frozenset({bool, int, str, tuple})

# By identity: a module's own __eq__ may be anything.
_KNOWN: dict[int, tuple[weakref.ref[nn.Module], dict[Hashable, Outcomes]]] = {}


def outcomes_of(module: nn.Module) -> Outcomes:
    """Return the counts, and the reasons why there are none, of a module as it is now.

    A module whose layers, weights' shapes, training flags or plain attributes (numbers, texts,
    tuples) have changed is another one; what was counted before comes back with them.
    """
    key = id(module)
    known = _KNOWN.get(key)
    if known is None or known[0]() is not module:
        reference = weakref.ref(module, lambda _: _KNOWN.pop(key, None))
        known = _KNOWN[key] = (reference, {})
    states = known[1]
    try:
        outcomes = states.setdefault(_structure(module), {})
    except (TypeError, RuntimeError):  # no hash, no shape yet, or kept where it cannot be seen
        return {}
    if len(outcomes) >= _MOST or len(states) > _MOST:
        states.clear()
    return outcomes


def _structure(module: nn.Module) -> tuple[Any, ...]:
    found: list[Any] = []
    waiting: list[nn.Module | None] = [module]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        own = vars(each)
        if "_parameters" not in own:
            raise TypeError("TorchScript keeps its weights itself")
        found.append(each.__class__)
        found += [value for value in own.values() if value.__class__ in _PLAIN]
        found += [
            None if weights is None else weights.shape for weights in own["_parameters"].values()
        ]
        waiting += own["_modules"].values()
    return tuple(found)
