"""Which ranks of a training record, and what becomes of what they cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from lightning.fabric.utilities.rank_zero import rank_zero_only

from provml_lightning.domain.values import to_plain
from provml_lightning.errors import ProvMLError, RecordError
from provml_lightning.runtime.run import Run

__all__ = ["excused", "lightning_rank", "on_recording_ranks"]

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


@contextmanager
def excused(run: Run, topic: str) -> Iterator[None]:
    """Let what cannot be kept be a warning and a note in the document: the training is worth more.

    Raises:
        ProvMLError: It cannot be kept and the run is strict.
    """
    try:
        yield
    except ProvMLError as error:
        run.excuse(topic, error)
    except Exception as error:  # noqa: BLE001  foreign objects raise anything
        run.excuse(topic, RecordError(f"{topic}: {to_plain(error)}"))
