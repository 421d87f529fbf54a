"""``prov4ml graph``, and the two commands of its parts: draw a run, or any PROV-JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from provml_lightning.cli.terminal import complain, survive_output
from provml_lightning.errors import ProvMLError
from provml_lightning.exporters.graph import write_dot, write_svg
from provml_lightning.query.places import require_run

__all__ = ["dot2svg_main", "graph", "prov2dot_main", "run_alone"]

Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="The file to write; beside the input if not.")
]


def graph(
    run: Annotated[Path, typer.Argument(help="A run's folder, or a PROV-JSON file.")],
    *,
    svg: Annotated[bool, typer.Option("--svg", help="Draw it as SVG too, beside the DOT.")] = False,
    output: Output = None,
) -> None:
    """Write the graph of a run's provenance as DOT, and with --svg as a picture."""
    require_run(run)
    if not svg:
        typer.echo(write_dot(run, output or _beside(run, ".dot")))
        return
    named = output or _beside(run, ".svg")
    bare = named.with_suffix("") if named.suffix in {".dot", ".svg"} else named
    dot = write_dot(run, bare.with_name(f"{bare.name}.dot"))
    typer.echo(dot)
    typer.echo(write_svg(dot, bare.with_name(f"{bare.name}.svg")))


def prov2dot_main() -> None:
    """Run ``python -m prov4ml.prov2dot`` on the process's arguments."""
    run_alone(_prov2dot, "python -m prov4ml.prov2dot")


def dot2svg_main() -> None:
    """Run ``python -m prov4ml.dot2svg`` on the process's arguments."""
    run_alone(_dot2svg, "python -m prov4ml.dot2svg")


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


def run_alone(command: Callable[..., None], name: str) -> None:
    """Run a command that is no part of ``prov4ml``; its errors are one line too."""
    survive_output()
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command()(command)
    try:
        alone(prog_name=name)
    except ProvMLError as error:
        complain(error)
        raise SystemExit(1) from error


def _beside(source: Path, suffix: str) -> Path:
    """Return the file that is written where none was named: in the run, or beside the input."""
    if source.is_dir():
        return source / f"prov_{source.resolve().name}{suffix}"
    changed = source.with_suffix(suffix)
    return changed if changed != source else source.with_name(f"{source.name}{suffix}")
