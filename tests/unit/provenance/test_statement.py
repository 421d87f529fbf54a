"""A whole run, stated: the same every time, and in time that grows with its size alone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from provml_lightning.domain.records import Parameter
from provml_lightning.provenance.provjson import dumps
from provml_lightning.provenance.statement import state
from tests.conformance.prov.runs import at, contents, ended, metric, opened, rich

if TYPE_CHECKING:
    from provml_lightning.domain.reading import RunContents


def test_the_same_contents_give_the_same_document_and_stay_as_they_are() -> None:
    run = rich()
    before = repr(run)
    assert dumps(state(run)) == dumps(state(run)) == dumps(state(rich()))
    assert repr(run) == before


def test_records_stand_in_the_order_in_which_they_were_told() -> None:
    keys = ["b", "a", "c"]
    told = [Parameter(time=at(1), key=key, value=1) for key in keys]
    document = state(contents(opened(), *told, ended()))
    assert list(document["entity"]) == ["param/~~/b", "param/~~/a", "param/~~/c"]


def test_eight_times_the_records_cost_less_than_sixteen_times_the_time() -> None:
    small, large = (_cost(_run(size)) for size in (500, 4000))
    assert large < 16 * small


def _run(size: int) -> RunContents:
    told = [Parameter(time=at(1), key=f"p/{number}", value=number) for number in range(size)]
    again = [Parameter(time=at(2), key="lr", value=number / 7) for number in range(size)]
    series = [metric(f"m/{number}") for number in range(size)]
    return contents(opened(), *told, *again, ended(), series=series)


def _cost(run: RunContents) -> float:
    """Return the least of three times of this process [s]."""
    costs = []
    for _ in range(3):
        before = time.process_time()
        dumps(state(run))
        costs.append(time.process_time() - before)
    return min(costs)
