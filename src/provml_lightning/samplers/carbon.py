"""Energy and emissions of an interval: what the sensors saw, times what the electricity costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.domain.catalogue import CARBON_METRICS, OF_CARBON
from provml_lightning.samplers.system import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provml_lightning.domain.carbon import Electricity
    from provml_lightning.samplers.interval import Interval

__all__ = ["ENERGIES", "carbon_values", "source_of"]

ENERGIES = ("cpu.energy", "gpu.energy", "ram.energy")
_UNITS = {metric.name: metric.unit for metric in CARBON_METRICS}


def carbon_values(interval: Interval, electricity: Electricity) -> list[Value]:
    """Return the energies and powers that are known, and the emissions if the intensity is.

    The energies are the machine's; the data centre's share, the PUE, is in the emissions alone.
    """
    amounts = {name: value for name in ENERGIES if (value := interval.amount(name)) is not None}
    rates = {name: value for name in ENERGIES if (value := interval.rate(name)) is not None}
    told = [_value(name, rates[name], "power", interval) for name in rates]
    told += [_value(name, amounts[name], "energy", interval) for name in amounts]
    energy, power = sum(amounts.values()), sum(rates.values())
    factor = electricity.grams_per_joule
    if amounts:
        source = OF_CARBON + source_of(interval, amounts)
        told.append(Value("energy_consumed", energy, _UNITS["energy_consumed"], source))
        if factor is not None:
            told.append(Value("emissions", energy * factor, _UNITS["emissions"], source))
    if rates and factor is not None:
        source = OF_CARBON + source_of(interval, rates)
        told.append(Value("emissions_rate", power * factor, _UNITS["emissions_rate"], source))
    return told


def source_of(interval: Interval, channels: Iterable[str]) -> str:
    """Return where a sum over channels comes from: the sources of its parts, each once."""
    return "+".join(dict.fromkeys(interval.source(channel) for channel in channels))


def _value(channel: str, value: float, quantity: str, interval: Interval) -> Value:
    name = f"{channel.partition('.')[0]}_{quantity}"
    return Value(name, value, _UNITS[name], OF_CARBON + interval.source(channel))
