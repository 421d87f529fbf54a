from __future__ import annotations

import re
from pathlib import Path

from docs.write_api import GROUPS, page

import prov4ml

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"


def calls_in(text: str) -> list[str]:
    """Return the calls of the page, each with its parameters and their defaults."""
    return re.findall(r"^###+ .*\n\n`(.*)`$", text, re.MULTILINE)


def test_the_reference_has_every_public_name() -> None:
    told = [name for names in GROUPS.values() for name in names]

    assert sorted(told) == sorted(set(prov4ml.__all__) - {"__version__"})


def test_the_reference_has_every_call_with_its_parameters() -> None:
    calls = calls_in(PAGE.read_text("utf-8"))

    assert calls == calls_in(page()), "run python docs/write_api.py"
    assert "list_metrics(data, context=None, source=None)" in calls
    assert "WeightDistributionTrackedModel.log_epoch(epoch)" in calls
