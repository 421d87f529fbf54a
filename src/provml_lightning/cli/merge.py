"""``prov4ml merge``, and the documents' command for it: several runs in one document."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from provml_lightning.cli.graph import run_alone
from provml_lightning.runtime.collecting import collect

__all__ = ["merge", "prov_collection_main"]

Merged = Annotated[
    bool, typer.Option("--merged", help="All records side by side, not a bundle for each.")
]


def merge(
    places: Annotated[
        list[Path], typer.Argument(help="Runs, PROV-JSON files, or projects that hold them.")
    ],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The PROV-JSON to write.")],
    merged: Merged = False,
) -> None:
    """Write the documents of several runs or processes into one."""
    typer.echo(collect(places, output, merged=merged))


def prov_collection_main() -> None:
    """Run ``python -m prov4ml.prov_collection`` on the process's arguments."""
    run_alone(_prov_collection, "python -m prov4ml.prov_collection")


def _prov_collection(
    experiment_path: Annotated[
        Path, typer.Option("--experiment_path", help="The folder that holds the runs.")
    ],
    output_dir: Annotated[
        Path, typer.Option("--output_dir", help="The folder to write the collection into.")
    ],
    *,
    merged: Merged = False,
) -> None:
    """Write the documents below a folder into one, collection.json."""
    typer.echo(collect([experiment_path], output_dir / "collection.json", merged=merged))
