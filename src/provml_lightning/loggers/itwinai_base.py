"""The class that itwinai takes for a logger: its own where it is installed, else ours."""

from __future__ import annotations

import functools
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

__all__ = ["Base", "ItwinaiLogger", "check_initialized", "check_not_initialized", "known_kinds"]

Method = TypeVar("Method", bound=Callable[..., Any])
Frequency = int | Literal["epoch", "batch"]

_logger = logging.getLogger("provml_lightning")


class ItwinaiLogger(ABC):
    """What itwinai asks of a logger, word for word; stands in where itwinai is not installed.

    Attributes:
        savedir: Where it writes.
        supported_kinds: Kinds of items that it keeps.
        log_on_workers: The ranks that log: one, several, or -1 for all.
        worker_rank: Global rank of this process.
        is_initialized: A context was created and not destroyed.

    Source:
        itwinai 0.4.2, ``itwinai.loggers.Logger``.
    """

    savedir: Path
    supported_kinds: tuple[str, ...]
    log_on_workers: int | list[int]
    worker_rank: int = 0
    is_initialized: bool = False

    def __init__(
        self,
        savedir: Path | str = "mllogs",
        log_freq: Frequency = "epoch",
        log_on_workers: int | list[int] = 0,
    ) -> None:
        self.savedir = Path(savedir)
        self.log_freq = log_freq
        self.log_on_workers = log_on_workers

    @property
    def log_freq(self) -> Frequency:
        """How often items of a batch are kept: "epoch" never, "batch" always, n every n-th."""
        return self._log_freq

    @log_freq.setter
    def log_freq(self, value: Frequency) -> None:
        if value not in ("epoch", "batch") and not (isinstance(value, int) and value > 0):
            raise ValueError(
                "Wrong value for 'log_freq'. Supported values are: "
                f"['epoch', 'batch'] or int > 0. Received: {value}"
            )
        self._log_freq = value

    @contextmanager
    def start_logging(self, rank: int = 0) -> Iterator[None]:
        """Create the context, and destroy it at the end of the block."""
        try:
            self.create_logger_context(rank=rank)
            yield
        finally:
            self.destroy_logger_context()

    @abstractmethod
    def create_logger_context(self, rank: int = 0, **kwargs: Any) -> Any:
        """Begin."""

    @abstractmethod
    def destroy_logger_context(self) -> None:
        """End."""

    @abstractmethod
    def save_hyperparameters(self, params: Any) -> None:
        """Keep hyperparameters."""

    @abstractmethod
    def log(
        self,
        item: Any,
        identifier: Any,
        kind: str = "metric",
        step: int | None = None,
        batch_idx: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep an item."""

    @abstractmethod
    def serialize(self, obj: Any, identifier: str) -> str:
        """Write an object to a file; return its path."""

    def should_log(self, batch_idx: int | None = None) -> bool:
        """Tell whether this rank logs, and logs this batch [1]; None is no batch's."""
        wanted = self.log_on_workers
        if self.worker_rank not in (wanted if isinstance(wanted, list) else (wanted,)) and (
            wanted != -1
        ):
            return False
        if batch_idx is None:
            return True
        if isinstance(self.log_freq, int):
            return batch_idx % self.log_freq == 0
        return self.log_freq == "batch"


try:
    from itwinai.loggers import Logger as _Base
except ImportError:  # not installed, or not what it needs
    _Base = ItwinaiLogger

if TYPE_CHECKING:
    Base = ItwinaiLogger
else:
    Base = _Base


def check_initialized(method: Method) -> Method:
    """Raise, in itwinai's own words, where a method is called without a context."""

    @functools.wraps(method)
    def checked(self: ItwinaiLogger, *args: Any, **kwargs: Any) -> Any:
        if not self.is_initialized:
            raise RuntimeError(
                f"{type(self).__name__} has not been initialized. Use either the"
                " ``start_logging`` context or the ``create_logger_context`` method."
            )
        return method(self, *args, **kwargs)

    return cast("Method", checked)


def check_not_initialized(method: Method) -> Method:
    """Warn, in itwinai's own words, where a context is created twice, and do nothing."""

    @functools.wraps(method)
    def checked(self: ItwinaiLogger, *args: Any, **kwargs: Any) -> Any:
        if self.is_initialized:
            name = type(self).__name__
            _logger.warning("Trying to initialize %s twice.. Skipping initialization.", name)
            return None
        return method(self, *args, **kwargs)

    return cast("Method", checked)


def known_kinds() -> set[str]:
    """Return every kind that a class of itwinai loggers in this process says it keeps."""
    kinds: set[str] = set()
    classes: list[type] = [Base]
    while classes:
        kind = classes.pop()
        kinds.update(getattr(kind, "supported_kinds", ()))
        classes.extend(kind.__subclasses__())
    return kinds
