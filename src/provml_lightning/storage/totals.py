"""What a run's own metrics of energy, emissions and FLOPs come to, context by context."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from provml_lightning.domain.catalogue import CARBON_METRICS, OF_CARBON, SYSTEM_METRICS
from provml_lightning.domain.measured import Total
from provml_lightning.storage.metrics import read_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provml_lightning.domain.reading import MetricKey, MetricSeries
    from provml_lightning.storage.contents import Ledger

__all__ = ["totals"]

_SYSTEM_ENERGIES = {
    metric.name: metric.sources for metric in SYSTEM_METRICS if metric.name.endswith("_energy")
}
_CARBON = {"energy_consumed": "energy", "emissions": "emissions"}
_COUNTED = {"FLOP": "flops", "MAC": "macs"}
_SENSORS = {source for metric in CARBON_METRICS for source in metric.sources}


def totals(ledger: Ledger, series: Iterable[MetricSeries]) -> Iterator[Total]:
    """Return the sums over each context of what the library measured there itself.

    Energy is that of ``log_carbon_metrics`` where a context has it, else that of
    ``log_system_metrics``: both tell the same joules. Each counted metric has a sum of its own.
    """
    found = [(_quantity(each), each) for each in series]
    told = [(quantity, each) for quantity, each in found if quantity]
    told.sort(key=lambda pair: (pair[1].name.context or "", pair[0]))
    for (_, quantity), group in groupby(told, key=lambda pair: (pair[1].name.context, pair[0])):
        yield _total(ledger, quantity, _preferred([each for _, each in group]))


def _quantity(series: MetricSeries) -> str | None:
    """Return what a metric is a part of; None for what a user logged, whatever its name."""
    name, source = series.name.key, series.name.source or ""
    if series.unit in _COUNTED and source.partition(".")[0] in {"flops", "thop"}:
        return f"{_COUNTED[series.unit]}_{name}"
    if source.startswith(OF_CARBON) and name in _CARBON:
        parts = source.removeprefix(OF_CARBON).split("+")
        return _CARBON[name] if _SENSORS.issuperset(parts) else None
    return "energy" if source in _SYSTEM_ENERGIES.get(name, ()) else None


def _preferred(series: Sequence[MetricSeries]) -> list[MetricSeries]:
    sums = [each for each in series if each.name.key in _CARBON]
    return sums or list(series)


def _total(ledger: Ledger, quantity: str, series: Sequence[MetricSeries]) -> Total:
    sources = dict.fromkeys(each.name.source or "" for each in series)
    return Total(
        quantity=quantity,
        context=series[0].name.context,
        amount=sum(_sum(ledger, each.name) for each in series),
        unit=series[0].unit or "",
        source="+".join(sources),
    )


def _sum(ledger: Ledger, name: MetricKey) -> float:
    blocks = read_blocks(ledger.layout, name, ledger.sources, ledger.sealed, ledger.form)
    return float(sum(float(block.value.sum()) for block in blocks))
