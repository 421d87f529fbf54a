"""The root command, which every other command is added to."""

from __future__ import annotations

from typing import Annotated

import typer

from provml_lightning.__about__ import __title__, __version__

__all__ = ["main"]

app = typer.Typer(no_args_is_help=True, add_completion=False)


def main() -> None:
    """Run the command line on the process's arguments."""
    app(prog_name="prov4ml")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{__title__} {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the title and version, then exit.",
        ),
    ] = False,
) -> None:
    """Provenance of machine learning runs: ask, draw, pack and recover them."""
