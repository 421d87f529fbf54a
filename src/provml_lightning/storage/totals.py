"""What a run's own metrics of energy, emissions and FLOPs come to, context by context."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from provml_lightning.domain.catalogue import CARBON_METRICS, OF_CARBON, SYSTEM_METRICS
from provml_lightning.domain.measured import Measured, Total

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provml_lightning.domain.reading import MetricKey, MetricSeries
    from provml_lightning.storage.formats.base import Block
    from provml_lightning.storage.journal import JournalLines

    # A process's rank, and when its sampler started [ns]
    Sampler = tuple[int, int]

__all__ = ["Sums"]

_SYSTEM_ENERGIES = {
    metric.name: metric for metric in SYSTEM_METRICS if metric.name.endswith("_energy")
}
_CARBON = {"energy_consumed": "energy", "emissions": "emissions"}
_COUNTED = {"FLOP": "flops", "MAC": "macs"}
_COUNTERS = {"flops", "thop"}
_UNITS = {metric.name: metric.unit for metric in CARBON_METRICS}
_SENSORS = {source for metric in CARBON_METRICS for source in metric.sources}


class Sums:
    """Sums what the library measured of each metric, while its values go by.

    Args:
        journals: All of the run, which say when samplers started.
    """

    def __init__(self, journals: Iterable[JournalLines]) -> None:
        self._begun = _begun(journals)
        self._sums: dict[MetricKey, dict[Sampler, float]] = {}

    def watch(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Return the blocks as they come, having added up those that can be in a sum."""
        for block in blocks:
            if _may_count(block.name):
                self._add(block)
            yield block

    def totals(self, series: Iterable[MetricSeries]) -> Iterator[Total]:
        """Return the sums over each context of what the library measured there itself.

        Energy has one of what ``log_carbon_metrics`` kept and one of what ``log_system_metrics``
        did: both tell the same joules. Each counted metric has a sum of its own.
        """
        told = [(key, each) for each in series if (key := _key(each))]
        told.sort(key=lambda pair: pair[0])
        for key, group in groupby(told, key=lambda pair: pair[0]):
            yield from self._of(key.quantity, [each for _, each in group])

    def _add(self, block: Block) -> None:
        """Add values to the sum of the sampler that was its process's latest at their time."""
        import numpy as np

        sums = self._sums.setdefault(block.name, defaultdict(float))
        starts = [0, *self._begun.get(block.rank, ())]
        # Times of values are whole microseconds, rounded down.
        latest = np.searchsorted(np.array(starts[1:], "i8") // 1000 * 1000, block.time, "right")
        for position in np.unique(latest).tolist():
            # A user's own number is in it only if it looks like ours; it is not to raise.
            with np.errstate(all="ignore"):
                amount = float(block.value[latest == position].sum())
            sums[block.rank, starts[position]] += amount

    def _of(self, quantity: str, series: Sequence[MetricSeries]) -> Iterator[Total]:
        amounts: dict[Sampler, float] = defaultdict(float)
        sources: dict[Sampler, dict[str, None]] = defaultdict(dict)
        for each in series:
            for sampler, amount in self._sums.get(each.name, {}).items():
                amounts[sampler] += amount
                sources[sampler][each.name.source or ""] = None
        for (rank, since), amount in amounts.items():
            yield Total(
                quantity=quantity,
                context=series[0].name.context,
                amount=amount,
                unit=series[0].unit or "",
                source="+".join(sources[rank, since]),
                rank=rank,
                since=since,
            )


class _Key(NamedTuple):
    """Which sum a metric is a part of."""

    has_context: bool
    context: str
    quantity: str
    of_carbon: bool


def _key(series: MetricSeries) -> _Key | None:
    """Return which sum a metric is a part of; None for what is in no sum."""
    quantity = _quantity(series)
    if quantity is None:
        return None
    _, context, source = series.name
    of_carbon = (source or "").startswith(OF_CARBON)
    return _Key(context is not None, context or "", quantity, of_carbon)


def _may_count(name: MetricKey) -> bool:
    """Tell whether a metric is in a sum, unless its unit says that it is a user's own."""
    return (
        name.key in _SYSTEM_ENERGIES
        or name.key in _CARBON
        or (name.source or "").partition(".")[0] in _COUNTERS
    )


def _quantity(series: MetricSeries) -> str | None:
    """Return what a metric is a part of; None for what a user logged, whatever its name."""
    name, source = series.name.key, series.name.source or ""
    if series.unit in _COUNTED and source.partition(".")[0] in _COUNTERS:
        return f"{_COUNTED[series.unit]}_{name}"
    if source.startswith(OF_CARBON) and name in _CARBON:
        parts = source.removeprefix(OF_CARBON).split("+")
        ours = _SENSORS.issuperset(parts) and series.unit == _UNITS[name]
        return _CARBON[name] if ours else None
    known = _SYSTEM_ENERGIES.get(name)
    ours = known is not None and source in known.sources and series.unit == known.unit
    return "energy" if ours else None


def _begun(journals: Iterable[JournalLines]) -> Mapping[int, list[int]]:
    """Return when each rank's samplers started [ns]."""
    begun: dict[int, set[int]] = defaultdict(set)
    for journal in journals:
        words = (record for record in journal.records if isinstance(record, Measured))
        begun[journal.writer.rank].update(word.since for word in words)
    return {rank: sorted(starts) for rank, starts in begun.items()}
