from __future__ import annotations

import json
import operator
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import prov4ml
from prov4ml import ProvenanceTrackedFunction, get_metric
from provml_lightning.domain.records import FunctionCall

Read = Callable[[type], list[Any]]


@ProvenanceTrackedFunction
def doubled(number: float, *, times: int = 2) -> float:
    """Return a number twice."""
    return number * times


def _name(of: str) -> str:
    return f"{__name__}.{of}"


def test_a_call_is_told_with_its_arguments_and_its_result(run: Any, records: Read) -> None:
    del run
    before = time.time_ns()
    doubled(1.5, times=4)
    after = time.time_ns()

    (call,) = records(FunctionCall)
    assert call.function == _name("doubled")
    assert call.arguments == {"number": "1.5", "times": "4"}
    assert call.result == "6.0"
    assert call.context is None
    assert call.error_type is None
    assert before <= call.time <= after
    assert 0 < call.seconds <= (after - before) / 1e9


def test_every_call_is_a_value_in_seconds(run: Any) -> None:
    slow = ProvenanceTrackedFunction(time.sleep, context="training")
    for _ in range(3):
        slow(0.002)
    run.close()

    table = get_metric(run.directory, "time.sleep", context="Training")
    assert table["step"].tolist() == [1, 2, 3]
    assert all(value >= 0.002 for value in table["value"])
    listed = prov4ml.list_metrics(run.directory)
    assert listed["unit"].tolist() == ["s"]


def test_an_exception_is_told_and_raised_as_it_is(run: Any, records: Read) -> None:
    del run
    error = ValueError("no room: password=hunter2")

    def fail() -> None:
        raise error

    with pytest.raises(ValueError, match="no room") as caught:
        ProvenanceTrackedFunction(fail)()

    assert caught.value is error
    (call,) = records(FunctionCall)
    assert call.error_type == "ValueError"
    assert call.error_message == "no room: password=***"
    assert call.result is None


def test_a_thousand_calls_are_one_activity(run: Any, activities: Callable[[], Any]) -> None:
    def halve(number: int) -> float:
        if number % 10 == 0:
            raise ZeroDivisionError("ten")
        return number / 2

    tracked = ProvenanceTrackedFunction(halve, context="Testing")
    for number in range(1000):
        try:
            tracked(number)
        except ZeroDivisionError:
            continue

    found = {name: one for name, one in activities().items() if name.startswith("call/")}
    (activity,) = found.values()
    assert activity["provml:calls"] == 1000
    assert activity["provml:failed_calls"] == 100
    assert activity["yprov:context"] == "Testing"
    assert 0 < activity["provml:shortest_seconds"] <= activity["provml:longest_seconds"]
    # The first 20 calls, of which those of 0 and 10 failed, and 18 more of the first 20 failures.
    shown = activity["provml:call"]
    assert len(shown) == 38
    assert shown[0].endswith("(number=0) raised ZeroDivisionError: ten")
    assert shown[1].endswith("(number=1) -> 0.5")
    assert shown[20].endswith("() raised ZeroDivisionError: ten")
    assert activity["prov:startTime"] < activity["prov:endTime"]
    document = json.loads((run.directory / "prov_digits_0.json").read_text("utf-8"))
    informed = [
        (r["prov:informed"], r["prov:informant"]) for r in document["wasInformedBy"].values()
    ]
    assert (next(iter(found)), "context/Testing") in informed


def test_one_function_in_two_contexts_is_two_activities(activities: Callable[[], Any]) -> None:
    for context in ("Training", "Validation"):
        ProvenanceTrackedFunction(operator.add, context)(1, 2)

    found = activities()
    for context in ("Training", "Validation"):
        assert found[f"call/{context}/_operator.add"]["provml:calls"] == 1


def test_secrets_are_masked_by_name_and_by_shape(run: Any, records: Read) -> None:
    del run

    def look_up(api_key: str, user: object, **more: str) -> str:
        del api_key, user
        return more["url"]

    tracked = ProvenanceTrackedFunction(look_up)
    tracked("abc", {"password": 5, "name": "ada"}, url="https://ada:pw@example.org/")

    (call,) = records(FunctionCall)
    assert call.arguments == {
        "api_key": "***",
        "user": "{password: ***, name: 'ada'}",
        "url": "'https://***@example.org/'",
    }
    assert call.result == "'https://***@example.org/'"


def test_descriptions_are_short_and_call_no_repr(run: Any, records: Read) -> None:
    del run

    class Huge:
        def __repr__(self) -> str:
            pytest.fail("a foreign repr may take minutes")

    tracked = ProvenanceTrackedFunction(lambda *values: values[0])
    tracked("x" * 10_000, list(range(1000)), Huge(), b"secret", Path("a/b"), {1: [[[[5]]]]})

    (call,) = records(FunctionCall)
    values = list(call.arguments.values())
    assert len(values[0]) == len(call.result) == 200
    assert values[1:] == [
        "[0, 1, 2, 3, 4, 5, … 1000 in all]",
        _name("test_descriptions_are_short_and_call_no_repr.<locals>.Huge"),
        "bytes of 6",
        "a/b",
        "{1: [[[… 1 in all]]]}",
    ]


def test_calls_before_a_run_wait_for_it(tmp_path: Path) -> None:
    assert doubled(2) == 4
    with prov4ml.start_run("digits", provenance_save_dir=tmp_path):
        doubled(3)

    table = get_metric(tmp_path / "digits_0", _name("doubled"))
    assert table["step"].tolist() == [1, 2]


def test_a_call_belongs_to_the_run_in_which_it_began(tmp_path: Path) -> None:
    def nested() -> None:
        prov4ml.start_run("inner", provenance_save_dir=tmp_path)

    with prov4ml.start_run("outer", provenance_save_dir=tmp_path):
        ProvenanceTrackedFunction(nested)()
        prov4ml.end_run()

    listed = prov4ml.list_metrics(tmp_path / "outer_0")["label"].tolist()
    assert listed == [_name("test_a_call_belongs_to_the_run_in_which_it_began.<locals>.nested")]


def test_a_rank_that_does_not_record_calls_the_bare_function(tmp_path: Path) -> None:
    with prov4ml.start_run("digits", provenance_save_dir=tmp_path, rank=1):
        assert doubled(2) == 4
    assert list(tmp_path.iterdir()) == []
