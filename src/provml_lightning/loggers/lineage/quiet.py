"""What is told of a Trainer stops no training."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from provml_lightning.errors import ProvMLError, RecordError

__all__ = ["quiet"]


class _Excusing(Protocol):
    @property
    def lock(self) -> RLock: ...

    def excuse(self, name: str, error: ProvMLError) -> None: ...


P = ParamSpec("P")
T = TypeVar("T", bound=_Excusing)


def quiet(
    tell: Callable[Concatenate[T, P], None],
) -> Callable[Concatenate[T, P], None]:
    """Let a fault be a note in the document: the training is worth more. One tells at a time.

    A run that is strict raises it, as it was asked to.
    """

    @wraps(tell)
    def guarded(self: T, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with self.lock:
                tell(self, *args, **kwargs)
        except ProvMLError as error:
            self.excuse(tell.__name__, error)
        except Exception as error:  # noqa: BLE001  foreign objects raise anything
            told = f"{type(error).__name__}: {error}"
            self.excuse(tell.__name__, RecordError(f"{tell.__name__.strip('_')}: {told}"))

    return guarded
