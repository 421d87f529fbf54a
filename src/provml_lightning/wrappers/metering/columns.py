"""The columns of a meter's file: CarbonAI's twenty-five, in their order, and ours after them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from provml_lightning.wrappers.metering.energies import Energies
    from provml_lightning.wrappers.metering.labels import Labels, Whose
    from provml_lightning.wrappers.metering.whereabouts import Place

__all__ = ["COLUMNS", "DATETIME_FORMAT", "INHERITED", "Cell", "Entry", "Row", "row_of"]

Cell = str | int | float | None
Row = dict[str, Cell]

DATETIME_FORMAT = "%m/%d/%Y %H:%M:%S"

INHERITED = (
    "Datetime",
    "Country",
    "Platform",
    "User ID",
    "ISO",
    "Project name",
    "Program name",
    "Client name",
    "Total Elapsed CPU Time (sec)",
    "Total Elapsed GPU Time (sec)",
    "Cumulative Package Energy (mWh)",
    "Cumulative IA Energy (mWh)",
    "Cumulative GPU Energy (mWh)",
    "Cumulative DRAM Energy (mWh)",
    "Cumulative process CPU Energy (mWh)",
    "Cumulative process DRAM Energy (mWh)",
    "PUE",
    "CO2 emitted (gCO2e)",
    "Package",
    "Algorithm",
    "Algorithm's parameters",
    "Data type",
    "Data shape",
    "Comment",
    "Step",
)
COLUMNS = (
    *INHERITED,
    "Started (UTC)",
    "Duration (sec)",
    "CPU energy source",
    "DRAM energy source",
    "GPU energy source",
    "Package energy (J)",
    "DRAM energy (J)",
    "GPU energy (J)",
    "Process CPU energy (J)",
    "Process DRAM energy (J)",
    "Carbon intensity (gCO2e/kWh)",
    "Carbon intensity source",
    "Run ID",
    "Rank",
    "Error",
    "PowerLog folder",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One measure, over.

    Attributes:
        began: When it began, UTC [ns].
        seconds: How long it took [s].
        run: Name of the run that it was part of, if there was one.
        rank: Of this process among those of one training.
        error: What the code raised, if it did: the class's name.
        powerlog: The folder that the caller gave for another tool's logs.
    """

    labels: Labels
    whose: Whose
    place: Place
    energies: Energies
    began: int
    seconds: float
    run: str | None = None
    rank: int = 0
    error: str | None = None
    powerlog: str | None = None


def row_of(entry: Entry) -> Row:
    """Return a measure as a row; what was not measured or is not known is None."""
    return dict(zip(COLUMNS, (*_inherited(entry), *_ours(entry)), strict=True))


def _inherited(entry: Entry) -> tuple[Cell, ...]:
    """Return CarbonAI's cells; the elapsed times are those over which CPU and GPU were entry."""
    labels, whose, energies = entry.labels, entry.whose, entry.energies
    country, electricity = entry.place.country, entry.place.electricity
    seconds = entry.seconds
    ended = datetime.fromtimestamp(entry.began / 1e9 + seconds, UTC).astimezone()
    return (
        ended.strftime(DATETIME_FORMAT),
        country.name if country else None,
        sys.platform,
        whose.user,
        country.alpha2 if country else None,
        whose.project,
        whose.program,
        whose.client,
        seconds if "cpu" in energies.sources else None,
        seconds if "gpu" in energies.sources else None,
        *(
            _milliwatt_hours(joules)
            for joules in (energies.cpu, energies.cores, energies.gpu, energies.ram)
        ),
        _milliwatt_hours(energies.process_cpu),
        _milliwatt_hours(energies.process_ram),
        electricity.pue,
        energies.emissions(electricity),
        labels.package,
        labels.algorithm,
        labels.algorithm_params,
        labels.data_type,
        labels.data_shape,
        labels.comments,
        labels.step,
    )


def _ours(entry: Entry) -> tuple[Cell, ...]:
    energies, electricity = entry.energies, entry.place.electricity
    sources = energies.sources
    return (
        datetime.fromtimestamp(entry.began / 1e9, UTC).isoformat(timespec="microseconds"),
        entry.seconds,
        sources.get("cpu"),
        sources.get("ram"),
        sources.get("gpu"),
        energies.cpu,
        energies.ram,
        energies.gpu,
        energies.process_cpu,
        energies.process_ram,
        electricity.intensity,
        electricity.known_from,
        entry.run,
        entry.rank,
        entry.error,
        entry.powerlog,
    )


def _milliwatt_hours(joules: float | None) -> float | None:
    return None if joules is None else joules / 3.6
