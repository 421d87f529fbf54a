"""``prov4ml graph``, and the two commands of its parts: draw a run, or any PROV-JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from provml_lightning.cli.terminal import Commands
from provml_lightning.exporters.graph import write_dot, write_svg

__all__ = ["dot2svg_main", "graph", "prov2dot_main"]

Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="The file to write; beside the input if not.")
]


def graph(
    run: Annotated[Path, typer.Argument(help="A run's folder, or a PROV-JSON file.")],
    *,
    svg: Annotated[bool, typer.Option("--svg", help="Draw it as SVG too.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The DOT, or with --svg the SVG, to write."),
    ] = None,
) -> None:
    """Write the graph of a run's provenance as DOT, and with --svg as a picture."""
    dot = output.with_suffix(".dot") if output and svg else output or _beside(run, ".dot")
    typer.echo(write_dot(run, dot))
    if svg:
        typer.echo(write_svg(dot, output or dot.with_suffix(".svg")))


def prov2dot_main() -> None:
    """Run ``python -m prov4ml.prov2dot`` on the process's arguments."""
    _run(_prov2dot, "python -m prov4ml.prov2dot")


def dot2svg_main() -> None:
    """Run ``python -m prov4ml.dot2svg`` on the process's arguments."""
    _run(_dot2svg, "python -m prov4ml.dot2svg")


def _prov2dot(
    prov_json: Annotated[
        Path, typer.Option("--prov_json", help="A PROV-JSON file, or a run's folder.")
    ],
    output: Output = None,
) -> None:
    """Write the graph of a PROV-JSON as DOT."""
    typer.echo(write_dot(prov_json, output or _beside(prov_json, ".dot")))


def _dot2svg(
    dot: Annotated[Path, typer.Option("--dot", help="A DOT file.")],
    output: Output = None,
) -> None:
    """Draw a DOT file as SVG."""
    typer.echo(write_svg(dot, output or _beside(dot, ".svg")))


def _run(command: object, name: str) -> None:
    """Run one command that has no name of its own; errors are one line, as everywhere."""
    alone = typer.Typer(cls=Commands, add_completion=False, pretty_exceptions_enable=False)
    alone.command()(command)  # type: ignore[type-var]
    alone(prog_name=name)


def _beside(source: Path, suffix: str) -> Path:
    """Return the file that is written where none was named: in the run, or beside the input."""
    if source.is_dir():
        folder = source.resolve()
        return folder / f"prov_{folder.name}{suffix}"
    return source.with_suffix(suffix)
