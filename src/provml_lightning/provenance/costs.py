"""What a run and its contexts cost: energy, emissions, FLOPs, and the hardware that used them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from provml_lightning.domain.measured import Measured

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from provml_lightning.domain.measured import Total
    from provml_lightning.domain.reading import RunContents
    from provml_lightning.domain.values import Plain

__all__ = ["context_costs", "run_costs"]


class _Amount(NamedTuple):
    amount: float
    unit: str
    source: str


def context_costs(contents: RunContents, context: str | None) -> dict[str, Plain]:
    """Return the sums over one context, each with its unit and source.

    The names are ``energy``, ``emissions``, ``flops_<metric>``, ``macs_<metric>``.
    """
    amounts = {
        total.quantity: _Amount(total.amount, total.unit, total.source)
        for total in contents.totals
        if total.context == context
    }
    return _stated(amounts)


def run_costs(contents: RunContents) -> dict[str, Plain]:
    """Return the sums over the whole run, ``total_…``, and the hardware that was measured.

    Energy and emissions are what the samplers of all processes saw from their start to their last
    word, also between two calls and outside every context. Where no sampler said so, as in a run
    that was killed, they are the sums of what was logged.
    """
    words = _last_words(contents)
    amounts = _logged(contents.totals) | _seen(words)
    stated = _stated({f"total_{quantity}": amount for quantity, amount in amounts.items()})
    hardware = _joined_by_name((word.hardware for word in words), "; ")
    return {**stated, **{f"{name}_hardware": told for name, told in hardware.items()}}


def _last_words(contents: RunContents) -> list[Measured]:
    """Return what each sampler told last."""
    last: dict[tuple[int, int], Measured] = {}
    for rank, record in contents.records:
        if isinstance(record, Measured):
            last[rank, record.since] = record
    return list(last.values())


def _seen(words: Sequence[Measured]) -> dict[str, _Amount]:
    joules = [float(value) for word in words for value in word.energies.values()]  # type: ignore[arg-type]
    if not joules:
        return {}
    sources = "+".join(dict.fromkeys(str(one) for word in words for one in word.sources.values()))
    seen = {"energy": _Amount(sum(joules), "J", sources)}
    grams = [word.emissions for word in words if word.emissions is not None]
    if grams:
        seen["emissions"] = _Amount(sum(grams), "gCO2eq", sources)
    return seen


def _logged(totals: Sequence[Total]) -> dict[str, _Amount]:
    parts: dict[str, list[Total]] = defaultdict(list)
    for total in totals:
        parts[total.quantity].append(total)
    return {
        quantity: _Amount(
            sum(one.amount for one in told),
            told[0].unit,
            "+".join(dict.fromkeys(one.source for one in told)),
        )
        for quantity, told in parts.items()
    }


def _stated(amounts: dict[str, _Amount]) -> dict[str, Plain]:
    stated: dict[str, Plain] = {}
    for name, told in amounts.items():
        stated |= {name: told.amount, f"{name}_unit": told.unit, f"{name}_source": told.source}
    return stated


def _joined_by_name(told: Iterable[Mapping[str, Plain]], between: str) -> dict[str, str]:
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for names in told:
        for name, value in names.items():
            found[name][str(value)] = None
    return {name: between.join(values) for name, values in found.items()}
