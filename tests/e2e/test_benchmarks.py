from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPREAD = r"-?[\d.]+(?: \(-?[\d.]+–-?[\d.]+\))?"
BUDGETED = (
    "log_metric,",
    "ProvMLLogger, 20 steps, loop",
    "ProvMLLogger, 20 steps, whole fit",
    "ProvMLLogger, 5 epochs of 10 steps with checkpoints, whole fit",
    "ProvMLLogger, added to a step",
    "bytes a point,",
    "end_run, 10000 points",
    "end_run, 100 metric names",
    "end_run, 100 parameters",
    "end_run, 40000 points",
    "memory above the baseline, 100000 points, logging",
    "memory above the baseline, 100000 points, ending",
    "get_metric,",
    "import prov4ml,",
    "from prov4ml import",
    "heavy libraries",
    "log_system_metrics,",
    "poll of the sampler,",
    "sampler's thread,",
    "log_flops_per_batch, a shape counted before",
    "all three, every epoch",
    "SystemMonitor, every step",
)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_benchmarks_print_every_budget_and_judge_none_at_small_sizes() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    ).stdout

    table = [line for line in said.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert rows[0] == ["what", "median (least–greatest)", "budget", "ratio", "ratio to", "holds"]
    for start in BUDGETED:
        assert any(row[0].startswith(start) for row in rows), start
    for _, measured, budget, ratio, against, holds in rows[2:]:
        assert re.fullmatch(rf"{SPREAD} (µs|ms|s|B|MB|%|of 8)", measured)
        assert re.fullmatch(rf"–|{SPREAD}", ratio)
        assert (ratio == "–") == (against == "–")
        assert holds == ("–" if budget == "–" else "not judged")


def test_a_benchmark_that_does_not_exist_is_refused_with_those_that_do() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "logging"],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )

    assert done.returncode == 2
    assert (
        "choose from log, fit, epochs, step, disk, close, memory, read, import, system"
        in done.stderr
    )
