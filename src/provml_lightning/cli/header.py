"""The head of a run's overview: a line for each thing that is known of the run as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from provml_lightning.cli.amounts import duration, moment, number, plural
from provml_lightning.cli.standing import advice, status_text
from provml_lightning.cli.tables import Row, print_table
from provml_lightning.cli.terminal import shown
from provml_lightning.domain.catalogue import OF_SYSTEM
from provml_lightning.query.costs import CostFacts
from provml_lightning.query.notes import shortened
from provml_lightning.query.overview import RunOverview

__all__ = ["print_header"]


def print_header(out: Console, overview: RunOverview, *, everything: bool) -> None:
    """Print the run's name and, a line each, what is known of it as a whole.

    Args:
        out: Where to.
        overview: The run.
        everything: Every note, also where many say what a machine does not measure.
    """
    head = overview.head
    out.print(shown(head.name), style="bold")
    told = (
        (Text(name, style="dim"), value)
        for name, value in _lines(overview, everything=everything)
        if value
    )
    rows: list[Row] = [{"name": name, "value": value} for name, value in told]
    print_table(rows, headed=False)


def _lines(overview: RunOverview, *, everything: bool) -> list[tuple[str, Any]]:
    head = overview.head
    told = advice(head)
    status = status_text(head.status) if head.status else Text("not stated")
    return [
        ("status", Text.assemble(status, ": ", shown(told)) if told else status),
        ("error", overview.error),
        ("experiment", _joined(", run ", head.experiment, head.run_id)),
        *(("continues", name) for name in overview.continues),
        ("started", moment(head.started) if head.started else None),
        ("duration", duration(head.duration) if head.duration is not None else None),
        ("place", head.place),
        ("user", _joined(" on ", overview.user, overview.host)),
        ("ranks", _ranks(overview.ranks)),
        ("command", overview.command),
        ("code", overview.code),
        (
            "library",
            _joined(", ", overview.library, overview.python and f"Python {overview.python}"),
        ),
        ("torn", f"{plural(overview.torn, 'line')} not whole, and lost" if overview.torn else None),
        *((cost.name.replace("_", " ", 1), _cost(cost)) for cost in overview.costs),
        *(("note", note) for note in _notes(overview.notes, everything=everything)),
    ]


def _notes(notes: Sequence[str], *, everything: bool) -> Sequence[str]:
    kept, left_out = (notes, 0) if everything else shortened(notes)
    return [*kept, f"{OF_SYSTEM}: {left_out} notes (--all)"] if left_out else kept


def _cost(cost: CostFacts) -> str:
    return f"{number(cost.amount)} {cost.unit} ({cost.source})"


def _joined(between: str, first: str | None, second: str | None) -> str | None:
    return f"{first}{between}{second}" if first and second else first or second


def _ranks(ranks: tuple[int, ...]) -> str | None:
    if ranks in ((), (0,)):
        return None
    unbroken = len(ranks) > 2 and ranks[-1] - ranks[0] == len(ranks) - 1  # noqa: PLR2004
    return f"{ranks[0]}–{ranks[-1]}" if unbroken else ", ".join(map(str, ranks))
