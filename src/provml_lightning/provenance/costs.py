"""What a run and its contexts cost: energy, emissions, FLOPs, and the hardware that used them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from provml_lightning.domain.catalogue import OF_CARBON
from provml_lightning.domain.measured import Measured

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provml_lightning.domain.measured import Total
    from provml_lightning.domain.reading import RunContents
    from provml_lightning.domain.values import Plain

    # A process's rank, and when its sampler started [ns]
    _Sampler = tuple[int, int]
    _Name = tuple[str, _Sampler]

__all__ = ["context_costs", "run_costs"]

_Key = TypeVar("_Key")
_SURELY = 1 + 1e-9  # more than the rounding of sums


class _Amount(NamedTuple):
    amount: float
    unit: str
    source: str


def context_costs(contents: RunContents, context: str | None) -> dict[str, Plain]:
    """Return the sums over one context, each with its unit and source.

    The names are ``energy``, ``emissions``, ``flops_<metric>``, ``macs_<metric>``. Energy is that
    of ``log_carbon_metrics`` where a context has it, else that of ``log_system_metrics``.
    """
    told = [total for total in contents.totals if total.context == context]
    of_carbon = {total.quantity for total in told if _is_of_carbon(total)}
    chosen = (one for one in told if _is_of_carbon(one) or one.quantity not in of_carbon)
    return _stated(_added((total.quantity, _amount(total)) for total in chosen))


def run_costs(contents: RunContents) -> dict[str, Plain]:
    """Return the sums over the whole run, ``total_…``, and the hardware that was measured.

    Energy and emissions are what the samplers of all processes saw from their start to their last
    word, also between two calls and outside every context. Where more was logged than a sampler
    said, as in a process that was killed, they are the sums of what was logged. A run that was
    resumed elsewhere says where the electricity of all its parts came from.
    """
    words = _last_words(contents)
    logged = _logged(contents.totals)
    greatest = {name: told for word in words.items() for name, told in _seen(*word)}
    for name, amount in logged:
        if name not in greatest or amount.amount > greatest[name].amount * _SURELY:
            greatest[name] = amount
    amounts = _added((f"total_{quantity}", told) for (quantity, _), told in greatest.items())
    hardware = _by_name(word.hardware for word in words.values())
    electricity = _by_name(word.electricity for word in words.values())
    named = {f"{name}_hardware": told for name, told in hardware.items()}
    return {**electricity, **_stated(amounts), **named}


def _last_words(contents: RunContents) -> dict[_Sampler, Measured]:
    """Return what each sampler told last."""
    last: dict[_Sampler, Measured] = {}
    for rank, record in contents.records:
        if isinstance(record, Measured):
            last[rank, record.since] = record
    return last


def _seen(sampler: _Sampler, word: Measured) -> Iterator[tuple[_Name, _Amount]]:
    if not word.energies:
        return
    source = "+".join(dict.fromkeys(str(one) for one in word.sources.values()))
    joules = [float(value) for value in word.energies.values()]  # type: ignore[arg-type]
    yield ("energy", sampler), _Amount(sum(joules), "J", source)
    if word.emissions is not None:
        yield ("emissions", sampler), _Amount(word.emissions, "gCO2eq", source)


def _logged(totals: Iterable[Total]) -> Iterator[tuple[_Name, _Amount]]:
    """Return what was logged in each sampler's time, of energy by either call."""
    parts = _added(
        ((total.quantity, (total.rank, total.since), _is_of_carbon(total)), _amount(total))
        for total in totals
    )
    for (quantity, sampler, _), amount in parts.items():
        yield (quantity, sampler), amount


def _is_of_carbon(total: Total) -> bool:
    return total.source.startswith(OF_CARBON)


def _amount(total: Total) -> _Amount:
    return _Amount(total.amount, total.unit, total.source)


def _added(told: Iterable[tuple[_Key, _Amount]]) -> dict[_Key, _Amount]:
    """Return the sums of the amounts of the same key."""
    parts: dict[_Key, list[_Amount]] = defaultdict(list)
    for key, amount in told:
        parts[key].append(amount)
    return {
        key: _Amount(
            sum(one.amount for one in amounts),
            amounts[0].unit,
            "+".join(dict.fromkeys(part for one in amounts for part in one.source.split("+"))),
        )
        for key, amounts in parts.items()
    }


def _stated(amounts: dict[str, _Amount]) -> dict[str, Plain]:
    stated: dict[str, Plain] = {}
    for name, told in amounts.items():
        stated |= {name: told.amount, f"{name}_unit": told.unit, f"{name}_source": told.source}
    return stated


def _by_name(told: Iterable[Mapping[str, Plain]]) -> dict[str, Plain]:
    """Return each fact; one that several told otherwise, as a text of all that was told."""
    found: dict[str, dict[Plain, None]] = defaultdict(dict)
    for names in told:
        for name, value in names.items():
            found[name][value] = None
    return {
        name: next(iter(values)) if len(values) == 1 else "; ".join(map(str, values))
        for name, values in found.items()
    }
