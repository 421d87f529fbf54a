"""``prov4ml crate``: make a run an RO-Crate, to share or to publish."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from provml_lightning.exporters.crate import write_crate
from provml_lightning.query.places import require_run

__all__ = ["crate"]


def crate(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    *,
    archive: Annotated[
        bool, typer.Option("--zip", help="Write <run>.zip beside the folder too.")
    ] = False,
    license_name: Annotated[
        str | None,
        typer.Option("--license", help="The terms of use: an SPDX identifier or a URL."),
    ] = None,
) -> None:
    """Describe a run's files as an RO-Crate; print what was written."""
    typer.echo(write_crate(require_run(run), archive=archive, license_name=license_name))
