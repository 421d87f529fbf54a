"""A run that records nothing: what the ranks hold that were not asked to record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from provml_lightning.runtime.contributors import Contributors

if TYPE_CHECKING:
    from types import TracebackType

    from provml_lightning.domain.records import Record

__all__ = ["SilentRun"]


class SilentRun:
    """Takes every call of a :class:`~provml_lightning.runtime.run.Run` and does nothing."""

    records = False
    compiles = False

    def __init__(self, rank: int) -> None:
        """Begin to do nothing as a rank."""
        self.rank = rank
        self.is_open = True
        self.contributors = Contributors()

    def record_metric(self, *_: object, **__: object) -> None:
        """Do nothing."""

    def record(self, record: Record) -> None:
        """Do nothing."""

    def excuse(self, *_: object) -> None:
        """Do nothing."""

    def snapshot(self, *_: object) -> None:
        """Do nothing."""

    def close(self, *_: object) -> None:
        """Take no more calls."""
        if self.is_open:
            self.contributors.ask(closing=True)
        self.is_open = False

    def become_child(self) -> None:
        """Do nothing."""

    def __enter__(self) -> Self:
        """Return the run itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Take no more calls."""
        self.close()
