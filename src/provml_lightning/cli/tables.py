"""Tables without lines, as narrow as the terminal, that lose no digit and no letter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from provml_lightning.cli.amounts import ABSENT
from provml_lightning.cli.terminal import console, shown

__all__ = ["Row", "print_table"]

Row = Mapping[str, str | Text]
_GAP = 2
_LEAST = 16
_HEADING = 28


def print_table(rows: Sequence[Row], *, headed: bool = True, indented: bool = True) -> None:
    """Print rows that have the same columns; a column without any value is left out.

    A column whose name begins with ``>`` holds numbers, which are never broken. Of the others the
    widest is folded where the terminal is narrow, then all. Where even that is too wide, lines are
    longer than the terminal.
    """
    columns = _columns(rows)
    widths = {name: _width(name, column, headed=headed) for name, column in columns.items()}
    out = console()
    folded = _folded(widths, out.width)
    least = sum(min(width, _LEAST) if name in folded else width for name, width in widths.items())
    out.width = max(out.width, least)
    table = Table(
        box=None,
        show_header=headed,
        header_style="dim",
        pad_edge=indented,
        padding=(0, 0, 0, _GAP),
    )
    for name in columns:
        table.add_column(
            _heading(name),
            justify="right" if name.startswith(">") else "left",
            overflow="fold",
            no_wrap=name not in folded,
        )
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    out.print(table)


def _columns(rows: Sequence[Row]) -> dict[str, list[Text]]:
    cells = {name: [_cell(row[name]) for row in rows] for name in (rows[0] if rows else ())}
    return {
        name: column
        for name, column in cells.items()
        if any(cell.plain not in ("", ABSENT) for cell in column)
    }


def _folded(widths: Mapping[str, int], available: int) -> set[str]:
    """Return the columns that may be folded: the widest text, or all where that is not enough."""
    texts = [name for name in widths if not name.startswith(">")]
    if not texts:
        return set()
    widest = max(texts, key=widths.__getitem__)
    others = sum(widths.values()) - widths[widest]
    return {widest} if others + _LEAST <= available else set(texts)


def _width(name: str, column: Sequence[Text], *, headed: bool) -> int:
    """Return what a column takes, its gap included [characters]."""
    heading = [_heading(name)] if headed else []
    return _GAP + max(cell.cell_len for cell in (*column, *heading))


def _heading(name: str) -> Text:
    return shown(name.removeprefix(">"), _HEADING)


def _cell(value: str | Text) -> Text:
    return value if isinstance(value, Text) else shown(value)
