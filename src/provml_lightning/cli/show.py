"""``prov4ml show``: one run at a glance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from provml_lightning.cli.json_output import plain, print_json
from provml_lightning.cli.sheet import print_sheet
from provml_lightning.query.overview import read_overview
from provml_lightning.query.places import require_run

__all__ = ["show"]

_ROWS = 20


def show(
    run: Annotated[
        Path, typer.Argument(help="A run's folder, its prov_*.json, or a ZIP file of it.")
    ],
    *,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="Leave nothing out of long lists.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the same facts as JSON.")] = False,
) -> None:
    """Show what a run was, what it was told, and what came of it.

    Running and killed runs answer too, and so do documents of yProv4ML.
    """
    overview = read_overview(require_run(run))
    if as_json:
        told = plain(overview)
        print_json({**told.pop("head"), "duration": overview.head.duration, **told})
    else:
        print_sheet(overview, longest=None if everything else _ROWS)
