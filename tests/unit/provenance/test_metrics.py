"""Metrics and the files that hold them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tests.conformance.prov.runs import at, metric

if TYPE_CHECKING:
    from collections.abc import Callable

    States = Callable[..., Any]


def test_a_metric_is_a_member_of_its_file_and_made_with_its_last_value(states: States) -> None:
    stated = states(series=[metric("loss", source="torch", unit="J", last=math.inf)])
    double = {"$": "1.0", "type": "xsd:double"}
    assert stated.entities["metric/Training/loss/torch"] == {
        "prov:type": {"$": "provml:Metric", "type": "prov:QUALIFIED_NAME"},
        "prov:label": "loss",
        "yprov:context": "Training",
        "yprov:source": "torch",
        "dcterms:identifier": "metrics/Training.parquet",
        "provml:unit": "J",
        "provml:rows": 3,
        "provml:first": double,
        "provml:last": {"$": "INF", "type": "xsd:double"},
        "provml:min": 0.25,
        "provml:max": double,
        "provml:first_step": 0,
        "provml:last_step": 2,
    }
    assert stated.relations("hadMember", "collection", "entity") == [
        ("metrics/Training", "metric/Training/loss/torch")
    ]
    assert stated.relations("wasGeneratedBy", "entity", "activity", "time") == [
        ("metrics/Training", "run/digits_0", None),
        ("metric/Training/loss/torch", "context/Training", "2026-01-02T03:04:17.000000+00:00"),
    ]


def test_a_metrics_file_is_a_collection_with_its_digest(states: States) -> None:
    stated = states(series=[metric("loss", None)])
    assert stated.entities["metrics/~~"] == {
        "prov:type": [
            {"$": "prov:Collection", "type": "prov:QUALIFIED_NAME"},
            {"$": "provml:MetricsFile", "type": "prov:QUALIFIED_NAME"},
        ],
        "prov:label": "metrics/~run.parquet",
        "dcterms:identifier": "metrics/~run.parquet",
        "dcterms:format": "application/vnd.apache.parquet",
        "yprov:file_size": 2048,
        "provml:sha256": "b" * 64,
        "provml:rows": 39,
    }


def test_a_metric_without_a_number_has_no_extremes_and_one_without_a_file_no_path(
    states: States,
) -> None:
    told = metric("loss", last=math.nan, minimum=None, maximum=None, unit=None, path=None)
    stated = states(series=[told])
    attributes = stated.entities["metric/Training/loss"]
    absent = {"provml:min", "provml:max", "provml:unit", "dcterms:identifier"}
    assert not absent & attributes.keys()
    assert attributes["provml:last"] == {"$": "NaN", "type": "xsd:double"}
    assert "hadMember" not in stated.document


def test_a_metric_with_times_of_another_year_was_made_while_the_run_ran(states: States) -> None:
    stated = states(series=[metric("old", None, first_time=0, last_time=1)])
    times = stated.relations("wasGeneratedBy", "entity", "time")
    assert times[-1] == ("metric/~~/old", "2026-01-02T03:04:05.000000+00:00")
    late = states(series=[metric("late", None, last_time=at(61))])
    times = late.relations("wasGeneratedBy", "entity", "time")
    assert times[-1] == ("metric/~~/late", "2026-01-02T03:05:05.000000+00:00")
