"""What a run of several processes says of those that were killed: they cannot say it themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.domain.records import Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provml_lightning.domain.records import Record
    from provml_lightning.storage.contents import Ledger

__all__ = ["with_cut_off"]


def with_cut_off(
    ledger: Ledger, told: Iterable[tuple[int, Record]]
) -> Iterator[tuple[int, Record]]:
    """Return the facts, and behind them a note of the ranks that were cut off, if any were."""
    latest = 0
    for rank, record in told:
        latest = max(latest, record.time)
        yield rank, record
    if ranks := ledger.cut_off():
        who = ", ".join(map(str, ranks))
        message = f"rank {who} was cut off before its end; what it logged until then is here"
        yield ranks[0], Note(time=latest, topic="ranks", message=message)
