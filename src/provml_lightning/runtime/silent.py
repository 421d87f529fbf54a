"""A run that records nothing: what the ranks hold that were not asked to record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from provml_lightning.domain.records import Status
from provml_lightning.runtime.block import Block
from provml_lightning.runtime.contributors import Contributors

if TYPE_CHECKING:
    from provml_lightning.domain.records import Record

__all__ = ["SilentRun"]


class SilentRun(Block):
    """Takes every call of a :class:`~provml_lightning.runtime.run.Run` and does nothing."""

    records = False
    compiles = False

    def __init__(self, rank: int) -> None:
        """Begin to do nothing as a rank."""
        self.rank = rank
        self.is_open = True
        self.numbers: dict[str | None, dict[Any, dict[str, int]]] = {}
        self.contributors = Contributors()

    def record_metric(self, *_: object, **__: object) -> None:
        """Do nothing."""

    def number_of(self, *_: object) -> int:
        """Return the number of what is not kept."""
        return 0

    def record_value(self, *_: object) -> None:
        """Do nothing."""

    def record(self, record: Record) -> None:
        """Do nothing."""

    def excuse(self, *_: object) -> None:
        """Do nothing."""

    def snapshot(self, *_: object) -> None:
        """Do nothing."""

    @override
    def close(self, status: Status = Status.COMPLETED, error: BaseException | None = None) -> None:
        """Take no more calls."""
        if self.is_open:
            self.contributors.ask(closing=True)
        self.is_open = False

    def become_child(self) -> None:
        """Do nothing."""
