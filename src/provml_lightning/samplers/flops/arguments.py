"""Which part of a batch goes into ``forward``: decided by its signature.

The rule, first that fits; a later reading is tried where ``forward`` fails on an earlier one:

1. The first parameter is called ``batch`` and no other is required: the whole batch.
2. A mapping, dataclass or named tuple that has all required parameters by name (or ``forward``
   takes any keyword): those members by name; members that ``forward`` does not know, such as
   labels, are left out.
3. A list or tuple: its first members, as many as there are required parameters, but at least one,
   so that ``(x, y)`` is ``forward(x)``; all members where ``forward`` takes any number. After
   that, all members, if there are parameters for them.
4. The whole batch as one argument.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from provml_lightning.samplers.flops.trees import is_sequence, members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Arguments", "readings"]


@dataclass(frozen=True, slots=True)
class Arguments:
    """What ``forward`` is called with."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


class _Signature(NamedTuple):
    """What a function takes; ``required`` counts positional parameters without a default."""

    positional: tuple[str, ...]
    required: int
    any_number: bool
    names: frozenset[str]
    required_names: frozenset[str]
    any_name: bool


def readings(forward: Callable[..., Any], batch: Any) -> Iterator[Arguments]:
    """Yield what ``forward`` may be called with for a batch, the likeliest first."""
    takes = _signature_of(forward)
    whole = Arguments((batch,))
    if takes.positional[:1] == ("batch",) and takes.required_names <= {"batch"}:
        yield whole
        return
    named = members(batch)
    if named and takes.required_names <= named.keys():
        known = {name: named[name] for name in named if takes.any_name or name in takes.names}
        if known:
            yield Arguments(kwargs=known)
    if is_sequence(batch):
        yield from _by_position(takes, tuple(batch))
    yield whole


def _by_position(takes: _Signature, batch: tuple[Any, ...]) -> Iterator[Arguments]:
    everything = takes.any_number and not takes.required
    first = len(batch) if everything else max(takes.required, 1)
    yield Arguments(batch[:first])
    if first < len(batch) and (takes.any_number or len(batch) <= len(takes.positional)):
        yield Arguments(batch)


def _signature_of(forward: Any) -> _Signature:
    function = getattr(forward, "__func__", None)
    return _of(forward, bound=False) if function is None else _of(function, bound=True)


@lru_cache(maxsize=256)
def _of(function: Any, *, bound: bool) -> _Signature:
    try:
        found = list(inspect.signature(function).parameters.values())[bound:]
    except (TypeError, ValueError):  # a builtin that tells nothing of itself
        return _Signature(("input",), 1, any_number=False, names=frozenset(),
                          required_names=frozenset({"input"}), any_name=False)  # fmt: skip
    kinds = inspect.Parameter
    positional = [each for each in found if each.kind <= kinds.POSITIONAL_OR_KEYWORD]
    named = [each for each in found if each.kind in _NAMED]
    required = [each for each in [*positional, *named] if each.default is kinds.empty]
    return _Signature(
        tuple(each.name for each in positional),
        sum(each.default is kinds.empty for each in positional),
        any(each.kind is kinds.VAR_POSITIONAL for each in found),
        frozenset(each.name for each in named),
        frozenset(each.name for each in required),
        any(each.kind is kinds.VAR_KEYWORD for each in found),
    )


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
