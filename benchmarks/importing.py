"""How long ``import prov4ml`` takes in a new interpreter, and what it loads."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial

from benchmarks.measuring import ENVIRONMENT, Times, interleave, over
from benchmarks.rows import Row

__all__ = ["measure"]

BUDGET = 100.0  # [ms]
HEAVY = ("lightning", "numpy", "pandas", "prov", "psutil", "pyarrow", "rocrate", "torch")

ALONE = "import prov4ml"
USED = "from prov4ml import start_run, log_metric, log_param, end_run"
BASELINE = "import json"

PROGRAM = """
import sys, time
wall, cpu = time.perf_counter(), time.process_time()
{statement}
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
heavy = [name for name in {heavy!r} if name in sys.modules]
import json
print(json.dumps([wall, cpu, heavy]))
"""


def measure(*, quick: bool) -> list[Row]:
    """Return the time of the import [ms], alone and with the verbs that resolve on first use."""
    found = interleave(
        {name: partial(_timed, name) for name in (ALONE, USED, BASELINE)}, 2 if quick else 15
    )
    rows = []
    for statement in (ALONE, USED):
        for clock in Times._fields:
            ours, base = (
                [getattr(each, clock) * 1e3 for each in found[name]]
                for name in (statement, BASELINE)
            )
            rows.append(
                Row(
                    what=f"{statement}, {clock}",
                    measured=ours,
                    unit="ms",
                    budget=BUDGET,
                    against=BASELINE,
                    ratios=over(ours, base),
                )
            )
    return [*rows, _heavy()]


def _heavy() -> Row:
    loaded = _run(USED)[2]
    return Row(
        what=" ".join(["heavy libraries loaded by then:", *(loaded or ["none"])]),
        measured=[len(loaded)],
        unit=f"of {len(HEAVY)}",
        budget=0,
    )


def _timed(statement: str) -> Times:
    wall, cpu, _ = _run(statement)
    return Times(wall, cpu)


def _run(statement: str) -> tuple[float, float, list[str]]:
    """Run a statement in a new interpreter; return its times [s] and what it loaded."""
    program = PROGRAM.format(statement=statement, heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
        text=True,
    )
    wall, cpu, heavy = json.loads(done.stdout)
    return wall, cpu, heavy
