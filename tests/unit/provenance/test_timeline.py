"""When a run and its contexts began and ended."""

from __future__ import annotations

import pytest

from provml_lightning.domain.records import ContextDeclared, Note, Parameter, Series, Status
from provml_lightning.provenance.timeline import Interval, first_opened, intervals, last_end
from tests.conformance.prov.runs import at, contents, ended, metric, opened


def parameter(seconds: float, context: str | None = None) -> Parameter:
    return Parameter(time=at(seconds), key="lr", value=0.1, context=context)


def test_a_run_lasts_from_its_first_fact_to_its_last() -> None:
    run = contents(parameter(-2), opened(), (1, ended(seconds=61)), ended())
    assert intervals(run) == {None: Interval(at(-2), at(61))}


def test_a_context_lasts_from_its_first_fact_or_value_to_its_last() -> None:
    run = contents(opened(), parameter(5, "Training"), ended(), series=[metric("loss")])
    assert intervals(run)["Training"] == Interval(at(5), at(12))


def test_a_metric_that_got_its_number_is_no_event_of_its_context() -> None:
    series = Series(time=at(1), number=1, key="loss", context="Training")
    run = contents(opened(), series, ended(), series=[metric("loss")])
    assert intervals(run)["Training"] == Interval(at(10), at(12))


def test_a_value_of_another_year_moves_no_bound() -> None:
    values = metric("loss", first_time=0, last_time=at(10**9))
    found = intervals(contents(opened(), ended(), series=[values]))
    assert found == {None: Interval(at(0), at(60)), "Training": Interval(at(0), at(60))}


@pytest.mark.parametrize("status", [Status.RUNNING, Status.INCOMPLETE])
def test_nothing_has_ended_where_the_run_has_not(status: Status) -> None:
    run = contents(opened(), series=[metric("loss")], status=status)
    assert intervals(run) == {None: Interval(at(0), None), "Training": Interval(at(10), None)}


def test_values_alone_tell_when_a_run_was_whose_facts_are_lost() -> None:
    run = contents(series=[metric("loss", None), metric("loss")])
    assert intervals(run) == {None: Interval(at(10), at(12)), "Training": Interval(at(10), at(12))}


def test_contexts_stand_in_the_order_of_their_starts_behind_the_run() -> None:
    run = contents(parameter(7, "b"), parameter(3, "c"), parameter(5, "a"))
    assert list(intervals(run)) == [None, "c", "a", "b"]


def test_the_lowest_rank_tells_how_the_run_began() -> None:
    told = first_opened(contents((1, opened(uuid="1")), (0, opened(uuid="0", time=at(1)))))
    assert told is not None
    assert told.uuid == "0"
    assert first_opened(contents()) is None


def test_the_last_end_holds_and_none_does_while_the_run_goes_on() -> None:
    first, last = ended(Status.COMPLETED, 30), ended(Status.FAILED, 60)
    note = Note(time=at(61), topic="storage", message="late")
    assert last_end(contents(first, last, note, status=Status.FAILED)) == last
    assert last_end(contents(first, status=Status.RUNNING)) is None


@pytest.mark.parametrize(("time", "nearest"), [(5, 10), (15, 15), (25, 20)])
def test_the_nearest_moment_of_an_interval_lies_in_it(time: int, nearest: int) -> None:
    assert Interval(10, 20).nearest(time) == nearest
    assert Interval(10, None).nearest(25) == 25


def test_a_context_lasts_as_long_as_its_parts() -> None:
    def declared(context: str, parent: str | None, seconds: float) -> ContextDeclared:
        return ContextDeclared(time=at(seconds), context=context, parent=parent)

    run = contents(
        opened(), declared("fold 1", "folds", 5), declared("folds", "Training", 4),
        parameter(30, "fold 1"), ended(),
    )  # fmt: skip
    span = Interval(at(4), at(30))
    assert intervals(run) == {
        None: Interval(at(0), at(60)),
        "fold 1": Interval(at(5), at(30)),
        "folds": span,
        "Training": span,
    }


def test_contexts_that_were_declared_as_parts_of_each_other_last_as_long() -> None:
    pairs = [("a", "b", 1), ("b", "a", 2)]
    declared = [ContextDeclared(time=at(s), context=c, parent=p) for c, p, s in pairs]
    found = intervals(contents(opened(), *declared, ended()))
    assert found["a"] == found["b"] == Interval(at(1), at(2))
