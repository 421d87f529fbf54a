from __future__ import annotations

from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provml_lightning.domain.context import Context, canonical_context


class Mine(str, Enum):  # noqa: UP042  users write it so
    WARM_UP = "warm up"
    TRAIN = "training"


@pytest.mark.parametrize(
    "spelled", [Context.TRAINING, "Training", "TRAINING", "training", "Context.TRAINING"]
)
def test_a_known_context_is_recognised_however_it_is_spelled(spelled: str) -> None:
    assert canonical_context(spelled) == "Training"
    assert type(canonical_context(spelled)) is str


@pytest.mark.parametrize(
    "own", ["", "my context", "Context.mine", "train", "Context.Context.TRAINING", "TRAİNİNG", "\0"]
)
def test_a_context_of_the_users_stays_as_it_is(own: str) -> None:
    assert canonical_context(own) == own


def test_an_enumeration_of_the_users_is_its_value_not_its_look() -> None:
    assert canonical_context(Mine.WARM_UP) == "warm up"
    assert canonical_context(Mine.TRAIN) == "Training"


def test_none_is_the_run_itself() -> None:
    assert canonical_context(None) is None


@given(st.text())
def test_the_canonical_spelling_is_its_own(context: str) -> None:
    once = canonical_context(context)
    assert canonical_context(once) == once
