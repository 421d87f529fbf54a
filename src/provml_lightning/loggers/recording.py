"""Which ranks of a training record."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from lightning.fabric.utilities.rank_zero import rank_zero_only

__all__ = ["lightning_rank", "on_recording_ranks"]

P = ParamSpec("P")


class _Recorder(Protocol):
    @property
    def records_here(self) -> bool: ...


L = TypeVar("L", bound=_Recorder)


def lightning_rank() -> int:
    """Return this process's rank as Lightning knows it, which may be before any process group."""
    rank: int = getattr(rank_zero_only, "rank", 0)
    return rank


def on_recording_ranks(
    call: Callable[Concatenate[L, P], Any],
) -> Callable[Concatenate[L, P], Any]:
    """Let a logger's method do nothing on ranks that were not asked to record."""

    @wraps(call)
    def guarded(logger: L, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        return call(logger, *args, **kwargs) if logger.records_here else None

    return guarded
