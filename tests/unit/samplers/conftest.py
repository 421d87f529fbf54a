from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """Put a fake library where the import finds it."""

    def install(module: ModuleType) -> ModuleType:
        monkeypatch.setitem(sys.modules, module.__name__, module)
        return module

    return install
