from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import prov4ml
from tests.training import Digits, digits

if TYPE_CHECKING:
    import torch

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "measure_a_training.md"


class Counted(Digits):
    """Digits with a forward."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layer(images)


@pytest.mark.filterwarnings("ignore:The number of training batches")
def test_the_snippets_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {
        "model": Counted(), "train_loader": digits(), "validation_loader": digits(),
    }  # fmt: skip
    for snippet in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        exec(snippet, names)  # noqa: S102  the page is ours

    assert len(names["emissions"]) == 10
    assert re.search(r"^[\d.e-]+ gCO2eq$", capsys.readouterr().out, re.MULTILINE)
    flops = prov4ml.get_metric("prov/digits/version_0", "flops", "Validation")
    assert flops["value"].tolist() == [32 * 2 * 64 * 10] * 10
