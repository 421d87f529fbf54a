from __future__ import annotations

import pytest

from provml_lightning.cli.tables import print_table
from provml_lightning.cli.terminal import shown

ROWS = [
    {"name": "a" * 30, ">first": "0.00243991", ">last": "2.23738", "file": "f" * 60, "none": "–"},
    {"name": "b", ">first": "1", ">last": "2", "file": "g", "none": ""},
]


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_width_costs_a_letter(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))

    print_table(ROWS)

    said = capsys.readouterr().out
    assert (said.count("a"), said.count("g")) == (30 + 2, 1)  # two in the headings
    assert said.count("f") == 60 + 2
    assert "0.00243991" in said
    assert "none" not in said


def test_the_widest_column_alone_is_folded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    print_table(ROWS)

    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "a" * 30 in lines[1]


def test_nothing_invisible_is_left_of_a_name() -> None:
    assert shown("a\x1b]0;x\x07\u202eb\ud800").plain == r"a\x1b]0;x\x07\u202eb\ud800"
    assert shown("x" * 500, 10).plain == "xxxxx … xxxxx"
