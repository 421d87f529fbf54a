"""What a run of several processes says of those that were killed: they cannot say it themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.domain.records import Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provml_lightning.domain.records import Record
    from provml_lightning.storage.contents import Ledger

__all__ = ["with_cut_off"]

_TOLD = {
    True: "was cut off before its end",
    False: "has not ended, and has told nothing for minutes from another machine",
}


def with_cut_off(
    ledger: Ledger, told: Iterable[tuple[int, Record]]
) -> Iterator[tuple[int, Record]]:
    """Return the facts, and behind them notes of the ranks that were cut off, if any were."""
    latest = 0
    for rank, record in told:
        latest = max(latest, record.time)
        yield rank, record
    found = ledger.cut_off()
    for is_dead, what in _TOLD.items():
        if ranks := [rank for rank, dead in found.items() if dead is is_dead]:
            message = f"rank {', '.join(map(str, ranks))} {what}; what it logged until then is here"
            yield ranks[0], Note(time=latest, topic="ranks", message=message)
