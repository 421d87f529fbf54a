from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

from provml_lightning.capture.foreign import attribute, class_name, is_a, length

LIGHT = """
import sys
import provml_lightning.capture.artifacts, provml_lightning.capture.environment
import provml_lightning.capture.source, provml_lightning.capture.torch_objects
print(sorted({"torch", "numpy", "pandas", "lightning"} & set(sys.modules)))
"""


class Hostile:
    @property
    def data(self) -> Any:
        raise RuntimeError

    def __len__(self) -> int:
        raise NotImplementedError


def test_a_class_is_known_by_its_name() -> None:
    assert is_a(Path(), "pathlib.PurePath")
    assert is_a(OrderedDict(), "no.such.Class", "collections.OrderedDict")
    assert not is_a(Path(), "collections.OrderedDict", "no.such.Class", "pathlib.nothing")


def test_questions_to_hostile_objects_are_answered_with_nothing() -> None:
    assert attribute(Hostile(), "data") is None
    assert attribute(Hostile(), "missing") is None
    assert length(Hostile()) is None
    assert length(3) is None
    assert length([1, 2]) == 2


def test_a_class_is_shown_with_its_module() -> None:
    assert class_name(OrderedDict()) == "collections.OrderedDict"
    assert class_name([]) == "list"


def test_capturing_loads_no_heavy_library() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", LIGHT], check=True, capture_output=True, text=True
    ).stdout

    assert printed.strip() == "[]"
