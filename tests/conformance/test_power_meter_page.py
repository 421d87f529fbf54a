"""The page on a PowerMeter's rows tells of every column, in its place."""

from __future__ import annotations

import re
from pathlib import Path

from provml_lightning.wrappers.metering.columns import COLUMNS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "power_meter.md"


def test_the_page_numbers_every_column_in_its_order() -> None:
    told = re.findall(r"^\| (\d+) \| `(.+?)` \| .+ \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert told == [(str(number), name) for number, name in enumerate(COLUMNS, 1)]
