from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from provml_lightning.domain.records import Parameter
from provml_lightning.domain.settings import RunSettings
from provml_lightning.runtime.opening import open_run

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "ask_a_run.md"


@pytest.fixture
def _digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the run that the page asks: ``prov/digits_0``."""
    monkeypatch.chdir(tmp_path)
    with open_run(RunSettings(experiment_name="digits", provenance_save_dir=Path("prov"))) as run:
        for key, value, context in (("seed", 7, None), ("lr", 0.1, "Training")):
            run.record(Parameter(time=time.time_ns(), key=key, value=value, context=context))
        for step, value in enumerate((0.5, 0.25)):
            run.record_metric("loss", value, "Training", step)
            run.record_metric("gpu_power", 80.0, "Training", step, "nvml.power", unit="W")


@pytest.mark.usefixtures("_digits")
def test_every_snippet_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for snippet in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        exec(snippet, names)  # noqa: S102  the page is ours
    assert capsys.readouterr().out.startswith("0.25 0.1")
    assert names["power"]["value"].tolist() == [80.0, 80.0]
    assert names["own"]["value"].tolist() == [0.5, 0.25]
    assert names["best"] == {"digits_0": 0.25}
    assert names["rates"] == {"digits_0": 0.1}
