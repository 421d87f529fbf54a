from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).with_name("prov4ml")


@pytest.mark.parametrize(
    "command", [[str(SCRIPT)], [sys.executable, "-m", "provml_lightning"]], ids=["script", "module"]
)
def test_the_command_line_says_its_title_and_version(command: list[str], tmp_path: Path) -> None:
    said = subprocess.run(
        [*command, "--version"], check=True, capture_output=True, text=True, cwd=tmp_path
    ).stdout

    assert said == "provml-lightning 0.1.0\n"
