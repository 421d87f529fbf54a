from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "first_run.md"


def call(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_step_of_the_first_run_does_what_the_page_says(tmp_path: Path) -> None:
    text = PAGE.read_text("utf-8")
    training, questions = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    commands = re.findall(r"^\$ (.+)\n((?:.+\n|\n)*?)```", text, re.MULTILINE)
    assert [command.split()[0] for command, _ in commands] == ["python", "prov4ml", "prov4ml"]

    (tmp_path / "first_run.py").write_text(training)
    call(tmp_path, sys.executable, "first_run.py")
    prov4ml = str(Path(sys.executable).with_name("prov4ml"))
    for command, shown in commands[1:]:
        said = call(tmp_path, prov4ml, *command.split()[1:])
        lines = {line.rstrip() for line in said.splitlines()} | {"…"}
        assert [line for line in shown.splitlines() if line not in lines] == []
    answers = call(tmp_path, sys.executable, "-c", questions)
    # 5 epochs of 1500 / 50 batches, and one value of the test.
    assert re.search(r"loss +Training +150 ", answers)
    assert re.search(r"accuracy +Testing +1 ", answers)
    assert len(re.findall(r"^[0-4] +\d\.\d+$", answers, re.MULTILINE)) == 5
    drawn = (tmp_path / "prov/first_run/version_0/prov_version_0.svg").read_text("utf-8")
    assert all(name in drawn for name in ("learning_rate", "digits_0", "accuracy"))
