"""The monitors in a configuration file of a real LightningCLI."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lightning.pytorch.cli import LightningCLI

import prov4ml
from tests.training import Digits, DigitsData

if TYPE_CHECKING:
    import torch

CONFIGURATION = """
seed_everything: 7
trainer:
  logger:
    class_path: prov4ml.ProvMLLogger
    init_args: {name: digits, carbon_intensity: 300}
  callbacks:
    - class_path: prov4ml.SystemMonitor
      init_args: {every: step, every_n: 2, contexts: [Training]}
    - class_path: prov4ml.CarbonMonitor
    - class_path: prov4ml.FlopsMonitor
      init_args: {engine: meta, synchronize: true}
  accelerator: cpu
  max_epochs: 1
  enable_progress_bar: false
  enable_model_summary: false
  num_sanity_val_steps: 0
"""


class Counted(Digits):
    """Digits with a forward."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layer(images)


@pytest.mark.filterwarnings("ignore:.*LightningCLI's args parameter")
@pytest.mark.filterwarnings("ignore:The number of training batches")
def test_the_monitors_work_from_yaml_and_from_the_configuration_that_the_run_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Lightning 2.6.6 calls methods that jsonargparse 4.53 has deprecated.
    monkeypatch.setenv("JSONARGPARSE_DEPRECATION_WARNINGS", "off")
    Path("config.yaml").write_text(CONFIGURATION)
    kept = "prov/digits/version_0/config.yaml"
    for version, told in enumerate(("config.yaml", kept)):
        LightningCLI(Counted, DigitsData, args=["fit", "--config", told])
        run = Path(f"prov/digits/version_{version}")
        (source,) = prov4ml.list_metrics(run, "Training").query("label == 'ram_usage_gb'")["source"]
        usage = prov4ml.get_metric(run, "ram_usage_gb", "Training", source)
        assert usage["step"].tolist() == [1, 3]
        assert prov4ml.get_metric(run, "emissions", "Training")["step"].tolist() == [3]
        flops = prov4ml.get_metric(run, "flops", "Training")["value"].tolist()
        assert flops == [4 * 8 * 2 * 64 * 10]
        assert "ram_usage_gb" not in set(prov4ml.list_metrics(run, "Validation")["label"])
