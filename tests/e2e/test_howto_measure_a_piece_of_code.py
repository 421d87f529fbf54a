from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "measure_a_piece_of_code.md"


def test_the_page_s_snippets_run_as_one_program(tmp_path: Path) -> None:
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    program = tmp_path / "page.py"
    program.write_text("\n".join(snippets), "utf-8")

    told = subprocess.run(
        [sys.executable, str(program)],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "200"},
    )

    assert told.stdout.splitlines()[1].split()[1:3] == ["RandomForestClassifier", "training"]
    with (tmp_path / "emissions.csv").open(newline="") as file:
        steps = [row["Step"] for row in csv.DictReader(file)]
    assert steps == ["training", "preprocessing", "inference", "training"]
    assert (tmp_path / "prov" / "digits_0" / "prov_digits_0.json").exists()
    assert told.stderr == ""
