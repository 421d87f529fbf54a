from __future__ import annotations

from typing import Any

import pytest

import prov4ml
from provml_lightning.callbacks.cadence import Cadence
from provml_lightning.errors import ConfigurationError

MONITORS = ("SystemMonitor", "CarbonMonitor", "FlopsMonitor")


@pytest.mark.parametrize("name", MONITORS)
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"every": "batch"}, "every='batch' is unknown; choose 'step' or 'epoch'"),
        ({"every_n": 0}, "every_n=0 must be a whole number from 1 up"),
        ({"every_n": 2.0}, "every_n=2.0 must be"),
        ({"every_n": True}, "every_n=True must be"),
        ({"contexts": []}, "contexts=.* is empty; name one of 'Training', 'Validation', 'Testing'"),
        ({"contexts": ["Models"]}, "'Models' is no stage; choose from 'Training'"),
        ({"contexts": "Trianing"}, "'Trianing' is no stage"),
    ],
)
def test_what_cannot_work_is_refused_with_value_and_remedy(
    name: str, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        getattr(prov4ml, name)(**wrong)


@pytest.mark.parametrize(
    ("asked", "understood"),
    [
        (["Training"], {"Training"}),
        ("Validation", {"Validation"}),
        (("TESTING", "prediction"), {"Testing", "Prediction"}),
        ([prov4ml.Context.TRAINING, "Context.VALIDATION"], {"Training", "Validation"}),
    ],
)
def test_stages_are_named_as_contexts_are_in_any_case(asked: Any, understood: set[str]) -> None:
    assert Cadence.of("epoch", 1, asked).contexts == understood


def test_each_nth_of_what_was_asked_is_due() -> None:
    cadence = Cadence.of("step", 3, ["Training"])
    assert [number for number in range(1, 10) if cadence.is_due("step", number)] == [3, 6, 9]
    assert not any(cadence.is_due("epoch", number) for number in range(1, 10))
