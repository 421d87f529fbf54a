from __future__ import annotations

import shutil
import stat
import subprocess
import sys
import sysconfig
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provml_lightning.domain.records import Parameter
from provml_lightning.domain.settings import RunSettings
from provml_lightning.errors import ExportError, MissingExtraError
from provml_lightning.exporters.graph import write_dot, write_svg
from provml_lightning.runtime.opening import open_run

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = "{http://www.w3.org/2000/svg}text"
ODD = 'l "r" <b> & \\N \n 学習率'


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with an odd parameter and a metric."""
    opened = open_run(RunSettings(experiment_name="digits", provenance_save_dir=tmp_path / "prov"))
    opened.record(Parameter(time=1_800_000_000_000_000_000, key=ODD, value=0.001))
    for step in range(3):
        opened.record_metric("loss", 1 / (step + 1), "Training", step)
    opened.close()
    return tmp_path / "prov" / "digits_0"


@pytest.fixture(
    params=[pytest.param("dot", marks=pytest.mark.graphviz), "graphviz-pure"],
)
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each of the two programs, alone on the PATH."""
    name: str = request.param
    found = shutil.which(name) or shutil.which(name, path=sysconfig.get_path("scripts"))
    assert found
    monkeypatch.setenv("PATH", str(Path(found).parent))
    if name == "dot":
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
    return name


def texts(svg: Path) -> Iterator[str]:
    for element in ET.parse(svg).iter(TEXT):  # noqa: S314  written just now
        yield element.text or ""


@pytest.mark.usefixtures("program")
def test_a_run_is_drawn_with_its_names_as_they_are(run: Path, tmp_path: Path) -> None:
    dot = write_dot(run, tmp_path / "g.dot")

    drawn = set(texts(write_svg(dot, tmp_path / "g.svg")))

    assert {"digits_0", "Training", "loss", "0.001", 'l "r" <b> & \\N 学習率'} <= drawn


@pytest.mark.usefixtures("program")
def test_a_file_name_is_never_a_command_or_an_option(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("x; touch PWNED", "$(touch PWNED)", "-oPWNED", "a b")
    for name in names:
        dot = write_dot(run, Path(f"{name}.dot"))
        write_svg(dot, Path(f"{name}.svg"))

    assert {path.name for path in Path().iterdir()} == {
        "prov",
        *(f"{name}.dot" for name in names),
        *(f"{name}.svg" for name in names),
    }


@pytest.mark.usefixtures("program")
def test_a_broken_dot_file_is_an_error_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "g.dot").write_text("digraph {")
    (tmp_path / "g.svg").write_text("the old picture")

    with pytest.raises(ExportError, match="syntax error"):
        write_svg(tmp_path / "g.dot", tmp_path / "g.svg")

    assert (tmp_path / "g.svg").read_text() == "the old picture"


def test_a_program_that_takes_too_long_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "bin" / "dot"
    slow.parent.mkdir()
    slow.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    slow.chmod(slow.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "g.dot").write_text("digraph {}")
    monkeypatch.setenv("PATH", str(slow.parent))

    with pytest.raises(ExportError, match=r"not drawn within 0\.2 s"):
        write_svg(tmp_path / "g.dot", tmp_path / "g.svg", timeout=0.2)


def test_without_any_program_both_remedies_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "g.dot").write_text("digraph {}")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))

    with pytest.raises(MissingExtraError) as caught:
        write_svg(tmp_path / "g.dot", tmp_path / "g.svg")

    assert "apt install graphviz" in str(caught.value)
    assert "provml-lightning[graph]" in str(caught.value)


def test_a_killed_run_is_drawn_from_its_journal(tmp_path: Path) -> None:
    program = (
        "import os; from provml_lightning.domain.settings import RunSettings;"
        "from provml_lightning.runtime.opening import open_run;"
        "run = open_run(RunSettings(experiment_name='k'));"
        "run.record_metric('loss', 0.5, 'Training', 0); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=False)

    dot = write_dot(tmp_path / "prov" / "k_0", tmp_path / "g.dot").read_text()

    assert "<loss<br/>" in dot
    assert "incomplete" in dot
