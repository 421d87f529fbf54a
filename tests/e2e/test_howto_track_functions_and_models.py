from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "track_functions_and_models.md"


def test_the_page_s_snippets_run_as_one_program(tmp_path: Path) -> None:
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    program = tmp_path / "page.py"
    program.write_text("\n".join(snippets), "utf-8")

    told = subprocess.run(
        [sys.executable, str(program)], check=True, capture_output=True, text=True, cwd=tmp_path
    )

    lines = told.stdout.splitlines()
    assert lines[0].startswith("1 ")
    assert lines[1] == "0 True (24, 4) float32"
    assert len(lines) == 2 + 3
