"""How everything is measured: both clocks, contenders in turn, rounds in fresh processes."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "ENVIRONMENT",
    "Times",
    "in_fresh_process",
    "interleave",
    "now",
    "over",
    "since",
    "timed",
]

ROOT = Path(__file__).resolve().parent.parent

# This checkout is what is measured, whatever is installed; its modules are compiled once.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
    "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
}


class Times(NamedTuple):
    """How long something took: on the wall, and of this process's CPUs [s]."""

    wall: float
    cpu: float


def timed(action: Callable[[], object]) -> Times:
    """Do something once and return how long it took [s]."""
    start = now()
    action()
    return since(start)


def now() -> Times:
    """Return what both clocks say [s]."""
    return Times(time.perf_counter(), time.process_time())


def since(start: Times) -> Times:
    """Return how long it is since both clocks said something [s]."""
    current = now()
    return Times(current.wall - start.wall, current.cpu - start.cpu)


def interleave(
    contenders: Mapping[str, Callable[[], Times]], rounds: int
) -> dict[str, list[Times]]:
    """Measure contenders in turn, A B C B C A C A B …, after one round that does not count.

    What the machine does besides then falls on all of them alike.
    """
    names = list(contenders)
    for name in names:
        contenders[name]()
    found: dict[str, list[Times]] = {name: [] for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(contenders[name]())
    return found


def over(values: Sequence[float], baseline: Sequence[float]) -> list[float]:
    """Return the ratios of what was measured in the same rounds."""
    return [value / base for value, base in zip(values, baseline, strict=True)]


def in_fresh_process(function: Callable[..., Any], **arguments: Any) -> Any:
    """Call a function of a benchmark in a new interpreter and an empty folder.

    Returns:
        What it returned, as JSON has it: tuples become lists.
    """
    with tempfile.TemporaryDirectory(prefix="provml-bench-") as folder:
        place = [function.__module__, function.__qualname__, json.dumps(arguments)]
        done = subprocess.run(
            [sys.executable, "-m", __name__, *place],
            cwd=folder,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{'.'.join(place[:2])} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main(module: str, function: str, arguments: str) -> None:
    """Call a function by its name and print what it returns."""
    result = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
