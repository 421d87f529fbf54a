"""``prov4ml recover``: finish what a killed process could not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from provml_lightning.cli.amounts import plural
from provml_lightning.cli.terminal import complain, console, shown
from provml_lightning.domain.reading import Writer
from provml_lightning.errors import ProvMLError
from provml_lightning.query.places import require_own_run
from provml_lightning.query.projects import list_runs_in_proj
from provml_lightning.runtime.recovery import Recovery, needs_recovery, recover
from provml_lightning.storage.layout import RunLayout

__all__ = ["recover_run"]


def recover_run(
    run: Annotated[Path, typer.Argument(help="A run's folder; with --all a folder of runs.")],
    *,
    every: Annotated[
        bool, typer.Option("--all", "-a", help="Recover every run below that needs it.")
    ] = False,
) -> None:
    """Write the documents of a run whose process died, from everything that it logged.

    Safe at any time: what a living process may still add stays where it is.

    The exit status is 0 when the record is whole, else 1.
    """
    layouts = _needing(run) if every else [RunLayout(require_own_run(run))]
    if every and not layouts:
        console().print(shown(f"nothing to recover below {run}: every record is whole"))
    # A list and no generator: every run gets its turn, whatever becomes of the one before.
    whole = [_recovered(layout) for layout in layouts]
    if not all(whole):
        raise typer.Exit(1)


def _needing(project: Path) -> list[RunLayout]:
    layouts = map(RunLayout, list_runs_in_proj(project))
    return [layout for layout in layouts if layout.is_run() and needs_recovery(layout)]


def _recovered(layout: RunLayout) -> bool:
    """Recover one run, say what was found, and tell whether its record is whole."""
    try:
        found = recover(layout)
    except ProvMLError as error:
        complain(f"{layout.directory}: {error}")
        return False
    out = console()
    what = "recovered" if found.changed else "nothing to do, the record is whole"
    if not found.whole:
        what = "not whole yet"
    out.print(shown(f"{layout.directory}: {what}"))
    for line in _lines(found):
        out.print(shown(f"  {line}"))
    return found.whole


def _lines(found: Recovery) -> list[str]:
    amounts = f"{plural(found.values, 'value')}, {plural(found.facts, 'fact')}"
    lines = [f"{amounts}; status {found.status.value}"]
    if found.torn:
        lines.append(f"{plural(found.torn, 'torn line')} of the journals: lost, and nothing else")
    lines += [
        f"{_name(writer)} may still be writing: its values stay where they are; when it has"
        " ended, recover again"
        for writer in found.writing
    ]
    lines += [
        f"{_name(writer)} cannot be asked from this machine: its log is kept, its values are in"
        " the metrics files too"
        for writer in found.kept
    ]
    return lines


def _name(writer: Writer) -> str:
    return f"rank {writer.rank} (process {writer.pid} on {writer.host})"
