"""The root command, which every other command is added to."""

from __future__ import annotations

from typing import Annotated

import typer

from provml_lightning.__about__ import __title__, __version__
from provml_lightning.cli.crate import crate
from provml_lightning.cli.graph import graph
from provml_lightning.cli.merge import merge
from provml_lightning.cli.recover import recover_run
from provml_lightning.cli.runs import runs
from provml_lightning.cli.show import show
from provml_lightning.cli.terminal import Commands, survive_output

__all__ = ["main"]

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("show")(show)
app.command("runs")(runs)
app.command("recover")(recover_run)
app.command("graph")(graph)
app.command("crate")(crate)
app.command("merge")(merge)


def main() -> None:
    """Run the command line on the process's arguments."""
    survive_output()
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
    """Provenance of machine learning runs: look at them, compare them, recover them."""
