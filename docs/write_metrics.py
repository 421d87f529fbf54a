"""Write the reference of the metrics from the catalogue: ``python docs/write_metrics.py``."""

from __future__ import annotations

from pathlib import Path

from provml_lightning.domain.catalogue import (
    CARBON_METRICS,
    EPOCH_TIME,
    SYSTEM_METRICS,
    WORK_METRICS,
    Metric,
)

__all__ = ["PAGE", "page"]

PAGE = Path(__file__).resolve().parent / "reference" / "metrics.md"

HEAD = """# Metrics that are measured

<!-- Written by docs/write_metrics.py from the catalogue; change that, then run it. -->

How far a number can be trusted: [what a number means](../explanation/what_a_number_means.md).

## System metrics

`log_system_metrics(context, step)` keeps these for the time since its last call in the run,
`SystemMonitor` for the steps or epochs of each stage of a Trainer.
A GB is 10⁹ bytes. What a machine cannot tell is absent, and a note in the document says why.

| metric | unit | meaning | `source`, the best first |
|---|---|---|---|
"""

CARBON = """
## Energy and emissions

`log_carbon_metrics(context, step)` keeps these for the time since its last call in the run,
`CarbonMonitor` for the steps or epochs of each stage of a Trainer.
Their `source` begins with `carbon:`, such as `carbon:rapl`.
That of a sum joins its parts, such as `carbon:rapl+nvml.energy`.
Emissions are energy × carbon intensity × PUE; without an intensity there are none.

| metric | unit | meaning | `source`, after `carbon:` |
|---|---|---|---|
"""

WORK = """
## Work and speed

`FlopsMonitor` keeps these for the steps or epochs of each stage.
Only forward passes are counted, not the backward ones.
Time is that on the wall, of this process, with data loading and without the counting itself.
An operation without a formula makes the source `….incomplete`, and the number a lower bound.

| metric | unit | meaning | `source` |
|---|---|---|---|
"""

EPOCHS = """
## Epochs

A Trainer with a `ProvMLLogger` keeps this in Training, Validation, Testing and Prediction.
Step and epoch are those of the metrics that the Trainer logs for the same epoch.

| metric | unit | meaning | `source` |
|---|---|---|---|
"""

TAIL = """
## Sources

| `source` | is |
|---|---|
| `rapl` | the energy counters of CPU packages and DRAM, through Linux's powercap |
| `rapl.psys` | the same counter of the whole platform, where there is none of the packages |
| `nvml.energy`, `nvml.power` | NVIDIA's energy counter; the integral of its power readings |
| `….mig-parent` | the same of a whole GPU of which this process has a part (MIG) |
| `nvml` | other readings of NVIDIA's driver |
| `amdsmi.energy`, `amdsmi.power` | AMD's energy counter; the integral of its power readings |
| `amdsmi` | other readings of AMD's driver |
| `apple` | the counters of Apple's chips, through the package zeus-apple-silicon |
| `model.tdp` | no sensor: a model of the CPUs' power from their usage |
| `model.dimm` | no sensor: a constant for so much RAM |
| `lightning` | the Trainer |
| `procfs`, `psutil`, `cgroup`, `statvfs` | the operating system |
| `flops.meta`, `flops.real` | a count on a copy without weights; of one real forward pass |
| `thop` | what the package thop counts |
| `perf_counter` | Python's clock |

| variable | sets |
|---|---|
| `PROVML_CPU_TDP_W` | power of all CPUs under full load [W], for `model.tdp` |
| `PROVML_CPU_IDLE_FRACTION` | the share of it that is drawn when idle, 0.1 if not set |
| `PROVML_RAM_POWER_W` | power of the RAM [W], for `model.dimm` |
| `PROVML_POWERCAP` | the folder that `rapl` reads, `/sys/class/powercap` if not set |
| `PROVML_COUNTRY`, `PROVML_REGION` | where the electricity comes from, where the run does not say |
| `PROVML_CARBON_INTENSITY` | its emissions [gCO2eq/kWh], instead of CodeCarbon's for the country |
| `PROVML_PUE` | PUE of the data centre; else 1, in a [PowerMeter](power_meter.md) CarbonAI's |
"""


def page() -> str:
    """Return the page's text."""
    return "".join(
        [
            *(HEAD, *map(_row, SYSTEM_METRICS)),
            *(CARBON, *map(_row, CARBON_METRICS)),
            *(WORK, *map(_row, WORK_METRICS)),
            *(EPOCHS, _row(EPOCH_TIME)),
            TAIL,
        ]
    )


def _row(metric: Metric) -> str:
    sources = ", ".join(f"`{source}`" for source in metric.sources)
    return f"| `{metric.name}` | {metric.unit} | {metric.meaning} | {sources} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
