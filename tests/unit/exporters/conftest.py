"""Documents to draw, written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pydot
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


def _typed(name: str) -> dict[str, str]:
    return {"$": name, "type": "prov:QUALIFIED_NAME"}


@pytest.fixture
def parsed() -> Callable[[str], pydot.Dot]:
    """Read DOT back, as another tool would."""

    def parse(text: str) -> pydot.Dot:
        (graph,) = pydot.graph_from_dot_data(text)
        return graph

    return parse


@pytest.fixture
def small() -> dict[str, Any]:
    """A run with one context, one parameter, one metric and its file, one user."""
    return {
        "prefix": {"default": "urn:uuid:1#", "provml": "https://w3id.org/provml#"},
        "agent": {"user/ada": {"prov:type": _typed("prov:Person"), "prov:label": "ada"}},
        "activity": {
            "run/digits_0": {
                "prov:startTime": "2026-01-02T03:04:05+00:00",
                "prov:endTime": "2026-01-02T03:04:07.500000+00:00",
                "prov:type": _typed("provml:RunExecution"),
                "prov:label": "digits_0",
                "provml:status": "completed",
            },
            "context/Training": {
                "prov:type": _typed("provml:LearningStage"),
                "prov:label": "Training",
            },
        },
        "entity": {
            "param/~~/lr": {
                "prov:type": _typed("provml:HyperParameter"),
                "prov:label": "lr",
                "prov:value": 0.001,
            },
            "metric/Training/loss": {
                "prov:type": _typed("provml:Metric"),
                "prov:label": "loss",
                "provml:unit": "J",
                "provml:rows": 100,
                "provml:last": {"$": "1100.0", "type": "xsd:double"},
            },
            "metrics/Training": {
                "prov:type": [_typed("prov:Collection"), _typed("provml:MetricsFile")],
                "prov:label": "metrics/Training.parquet",
            },
        },
        "wasAssociatedWith": {"_:id1": {"prov:activity": "run/digits_0", "prov:agent": "user/ada"}},
        "wasInformedBy": {
            "_:id2": {"prov:informed": "context/Training", "prov:informant": "run/digits_0"}
        },
        "used": {"_:id3": {"prov:activity": "run/digits_0", "prov:entity": "param/~~/lr"}},
        "wasGeneratedBy": {
            "_:id4": {"prov:entity": "metrics/Training", "prov:activity": "run/digits_0"},
            "_:id5": {"prov:entity": "metric/Training/loss", "prov:activity": "context/Training"},
        },
        "hadMember": {
            "_:id6": {"prov:collection": "metrics/Training", "prov:entity": "metric/Training/loss"}
        },
    }


@pytest.fixture
def large() -> Callable[[int], dict[str, Any]]:
    """A run with as many parameters as metrics, half of these in each of two contexts."""

    def document(count: int) -> dict[str, Any]:
        stage = _typed("provml:LearningStage")
        made: dict[str, Any] = {
            "activity": {
                "run/r_0": {"prov:type": _typed("provml:RunExecution"), "prov:label": "r_0"},
                "context/Training": {"prov:type": stage, "prov:label": "Training"},
                "context/Validation": {"prov:type": stage, "prov:label": "Validation"},
            },
            "entity": {},
            "used": {},
            "wasGeneratedBy": {},
        }
        for i in range(count):
            context = ("Training", "Validation")[i % 2]
            made["entity"][f"param/{i}"] = {
                "prov:type": _typed("provml:HyperParameter"),
                "prov:label": f"p{i}",
                "prov:value": i,
            }
            made["entity"][f"metric/{i}"] = {
                "prov:type": _typed("provml:Metric"),
                "prov:label": f"m{i}",
                "provml:rows": i,
            }
            made["used"][f"_:u{i}"] = {"prov:activity": "run/r_0", "prov:entity": f"param/{i}"}
            made["wasGeneratedBy"][f"_:g{i}"] = {
                "prov:entity": f"metric/{i}",
                "prov:activity": f"context/{context}",
            }
        return made

    return document


@pytest.fixture
def versions() -> Callable[..., dict[str, Any]]:
    """A chain of model versions, each derived from the one before; one may be the best."""

    def document(count: int, best: int | None = None) -> dict[str, Any]:
        kinds = [_typed("provml:Model"), _typed("provml:ModelVersion")]
        return {
            "entity": {
                f"v/{i}": {"prov:type": kinds, "prov:label": f"net_{i}"}
                | ({"provml:is_best": True} if i == best else {})
                for i in range(count)
            },
            "wasDerivedFrom": {
                f"_:d{i}": {"prov:generatedEntity": f"v/{i}", "prov:usedEntity": f"v/{i - 1}"}
                for i in range(1, count)
            },
        }

    return document
