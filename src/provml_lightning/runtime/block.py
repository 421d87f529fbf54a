"""What every run is as a context manager."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

from provml_lightning.domain.records import Status
from provml_lightning.errors import ProvMLError
from provml_lightning.runtime.faults import warn
from provml_lightning.runtime.outcome import outcome_of

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Block"]


class Block(ABC):
    """A run that closes at the end of its block, with the status that its exception says."""

    @abstractmethod
    def close(self, status: Status = Status.COMPLETED, error: BaseException | None = None) -> None:
        """End the run; a second call does nothing."""

    def __enter__(self) -> Self:
        """Return the run itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the run; an exception of the block is the run's, and goes on as it is."""
        try:
            self.close(outcome_of(error), error)
        except ProvMLError as failure:
            if error is None:
                raise
            warn(str(failure))
