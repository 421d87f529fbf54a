from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import pytest

from provml_lightning.domain.context import Context
from provml_lightning.domain.metric_names import metric_key
from provml_lightning.domain.reading import MetricKey
from provml_lightning.errors import RecordError


class Name(str, Enum):  # noqa: UP042  users write it so
    LOSS = "loss"


@pytest.mark.parametrize("key", ["loss", Name.LOSS, np.str_("loss")])
@pytest.mark.parametrize("context", [Context.TRAINING, "training"])
def test_equal_texts_are_one_metric_whatever_their_class(key: str, context: str) -> None:
    found = metric_key(key, context, Name.LOSS)
    assert found == MetricKey("loss", "Training", "loss")
    assert [type(part) for part in found] == [str, str, str]


@pytest.mark.parametrize(
    ("key", "context", "source", "message"),
    [
        (1, None, None, "name must be text, not int: 1"),
        (None, None, None, "name must be text, not NoneType"),
        (b"loss", None, None, "name must be text, not bytes"),
        (["loss"], None, None, "name must be text, not list"),
        ("loss", 3, None, "context must be text, not int"),
        ("loss", None, {}, "source must be text, not dict"),
        ("\ud800", None, None, "name '\\\\ud800' is not valid Unicode"),
    ],
)
def test_what_is_no_text_is_no_name(key: Any, context: Any, source: Any, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        metric_key(key, context, source)
