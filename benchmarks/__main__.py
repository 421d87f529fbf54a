"""Measure, print one table, and say of each budget whether it holds."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import (
    closing,
    counted_flops,
    disk_space,
    importing,
    lightning_epochs,
    lightning_fit,
    lightning_step,
    logging_calls,
    memory,
    monitored_fit,
    reading,
    system_metrics,
)

if TYPE_CHECKING:
    from benchmarks.rows import Row

__all__: list[str] = []

BENCHMARKS = {
    "log": logging_calls.measure,
    "fit": lightning_fit.measure,
    "epochs": lightning_epochs.measure,
    "step": lightning_step.measure,
    "disk": disk_space.measure,
    "close": closing.measure,
    "memory": memory.measure,
    "read": reading.measure,
    "import": importing.measure,
    "system": system_metrics.measure,
    "flops": counted_flops.measure,
    "monitors": monitored_fit.measure,
}
COLUMNS = ("what", "median (least–greatest)", "budget", "ratio", "ratio to", "holds")


def main() -> None:
    """Run the benchmarks that were named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(BENCHMARKS)}; none: all")
    parser.add_argument("--quick", action="store_true", help="small sizes, which no budget judges")
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in BENCHMARKS]:
        parser.error(f"there is no {', '.join(unknown)}; choose from {', '.join(BENCHMARKS)}")
    rows: list[Row] = []
    for name in asked.names or BENCHMARKS:
        print(f"measuring {name} …", file=sys.stderr)
        rows += BENCHMARKS[name](quick=asked.quick)
    show(rows, judge=not asked.quick)


def show(rows: list[Row], *, judge: bool) -> None:
    """Print a table that is Markdown too."""
    table = Table(*COLUMNS, box=box.MARKDOWN)
    for row in rows:
        table.add_row(*row.cells(judge=judge))
    # Cells are never broken over lines, so that the output can be pasted into a page.
    Console(width=250, soft_wrap=True).print(table)


if __name__ == "__main__":
    main()
