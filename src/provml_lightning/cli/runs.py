"""``prov4ml runs``: the runs of a project, one row each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from provml_lightning.cli.amounts import ABSENT, duration, moment, number
from provml_lightning.cli.json_output import plain, print_json
from provml_lightning.cli.standing import status_text
from provml_lightning.cli.tables import Row, print_table
from provml_lightning.cli.terminal import console, shown, warn
from provml_lightning.domain.reading import MetricKey
from provml_lightning.query.comparison import RunRow, columns_of, compare_runs

__all__ = ["runs"]


def runs(
    project: Annotated[Path, typer.Argument(help="A folder with runs at any depth.")] = Path(
        "prov"
    ),
    *,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", help="Show a metric's last value. May be repeated."),
    ] = None,
    sort: Annotated[
        str,
        typer.Option("--sort", "-s", help="run, status, started, duration, or a metric's name."),
    ] = "run",
    reverse: Annotated[bool, typer.Option("--reverse", "-r", help="Greatest first.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the same facts as JSON.")] = False,
) -> None:
    """List the runs of a project, one row each.

    Running and killed runs are listed too, and so are those of yProv4ML.
    """
    rows = compare_runs(project, metric or [], sort=sort, reverse=reverse)
    if as_json:
        print_json([_json(row) for row in rows])
    else:
        _print(project, rows, columns_of(rows, metric or []))


def _print(project: Path, rows: Sequence[RunRow], columns: Sequence[MetricKey]) -> None:
    if not rows:
        console().print(shown(f"{project} holds no runs"))
        return
    print_table([_cells(row, columns) for row in rows], indented=False)
    for row in rows:
        if row.fault is not None:
            warn(f"{row.path}: {row.fault}")


def _cells(row: RunRow, columns: Sequence[MetricKey]) -> Row:
    last = {f">{_heading(column, columns)}": number(row.last.get(column)) for column in columns}
    return {"run": row.path, **_standing(row), **last}


def _heading(column: MetricKey, columns: Sequence[MetricKey]) -> str:
    """Return a metric's name, with context and source where it is not the only one of the name."""
    alone = sum(other.key == column.key for other in columns) == 1
    parts = [column.key] if alone else [part for part in column if part is not None]
    return " ".join(parts)


def _standing(row: RunRow) -> Row:
    head = row.head
    if head is None:
        return {
            "status": Text("unreadable", style="bold red"),
            "started": ABSENT,
            ">duration": ABSENT,
        }
    return {
        "status": status_text(head.status),
        "started": moment(head.started),
        ">duration": duration(head.duration),
    }


def _json(row: RunRow) -> dict[str, Any]:
    head = {} if row.head is None else {**plain(row.head), "duration": row.head.duration}
    last = [
        {"name": key.key, "context": key.context, "source": key.source, "last": value}
        for key, value in row.last.items()
    ]
    return {"path": row.path, **head, "metrics": last, "fault": row.fault}
