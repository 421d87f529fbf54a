"""FLOPs as metrics of a run: name, unit, source, and what a failure leaves behind."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import prov4ml
from provml_lightning.errors import RecordDroppedWarning, RecordError, SamplerUnavailableError
from provml_lightning.storage.contents import open_ledger
from tests.training import Digits, digits, trainer

if TYPE_CHECKING:
    from pathlib import Path

MODEL, BATCH = nn.Linear(6, 5), torch.ones(3, 6)
FLOPS = 2 * 3 * 6 * 5


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def document() -> str:
    (found,) = prov4ml.list_provjson_in_proj("prov")
    return str(found)


def notes(run: Any) -> list[str]:
    journals = open_ledger(run.layout).journals
    return [
        record.message
        for journal in journals
        for record in journal.records
        if type(record).__name__ == "Note"
    ]


def test_flops_of_batch_and_epoch_are_metrics_with_unit_and_source() -> None:
    loader = DataLoader(TensorDataset(torch.ones(10, 6)), batch_size=4)
    with prov4ml.start_run("flops"):
        prov4ml.log_flops_per_batch("per batch", MODEL, BATCH, prov4ml.Context.TRAINING, 3)
        prov4ml.log_flops_per_epoch("per epoch", MODEL, loader, "Training", step=1)
        prov4ml.log_flops_per_batch("by thop", MODEL, BATCH, engine="thop")
    metrics = prov4ml.list_metrics(document()).set_index("label")
    assert metrics.loc["per batch", ["unit", "source", "last"]].tolist() == [
        "FLOP", "flops.meta", FLOPS,
    ]  # fmt: skip
    assert metrics.loc["per epoch", ["unit", "source", "last"]].tolist() == [
        "FLOP", "flops.meta", 10 * 2 * 6 * 5,
    ]  # fmt: skip
    assert metrics.loc["by thop", ["unit", "source", "last"]].tolist() == [
        "MAC", "thop", FLOPS // 2,
    ]  # fmt: skip
    assert prov4ml.get_metric(document(), "per batch")["step"].tolist() == [3]


def test_a_count_made_before_the_run_opens_goes_to_the_run() -> None:
    prov4ml.log_flops_per_batch("early", MODEL, BATCH)
    with prov4ml.start_run("flops"):
        pass
    assert prov4ml.get_metric(document(), "early")["value"].tolist() == [FLOPS]


def test_a_forward_that_fails_is_one_warning_and_one_note_and_the_run_goes_on() -> None:
    with prov4ml.start_run("flops") as run:
        with pytest.warns(RecordDroppedWarning, match="'lost' were not counted: .*mat1 and mat2"):
            prov4ml.log_flops_per_batch("lost", MODEL, torch.ones(3, 7))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for step in range(3):
                prov4ml.log_flops_per_batch("lost", MODEL, torch.ones(3, 7), step=step)
        prov4ml.log_metric("loss", 0.5)
        assert len(notes(run)) == 1
    assert prov4ml.list_metrics(document())["label"].tolist() == ["loss"]


def test_what_is_missing_in_a_count_or_counted_for_real_is_noted_once() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.both = nn.Bilinear(6, 6, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.both(x, x) + torch.ones(5, device="cpu")

    model = Mixed()
    with prov4ml.start_run("flops") as run:
        for step in range(3):
            prov4ml.log_flops_per_batch("mixed", model, BATCH, step=step)
        real, missing = notes(run)
    assert "one real forward pass was counted" in real
    assert "the work of aten._trilinear is not in them" in missing
    assert prov4ml.list_metrics(document())["source"].tolist() == ["flops.real.incomplete"]


def test_wrong_arguments_are_refused_at_the_call() -> None:
    with prov4ml.start_run("flops"):
        with pytest.raises(SamplerUnavailableError, match="of a NoneType cannot be counted"):
            prov4ml.log_flops_per_batch("a", None, BATCH)
        with pytest.raises(SamplerUnavailableError, match="of a str cannot be counted"):
            prov4ml.log_flops_per_epoch("a", "model", [BATCH])
        with pytest.raises(RecordError, match="not a whole number"):
            prov4ml.log_flops_per_batch("a", MODEL, BATCH, step=0.5)  # type: ignore[arg-type]


def test_a_lightning_module_logs_its_own_flops_at_every_step() -> None:
    class Told(Digits):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return self.layer(images)

        def training_step(self, batch: Any) -> torch.Tensor:
            prov4ml.log_flops_per_batch("flops", self, batch, "Training", self.global_step)
            return super().training_step(batch)

    logger = prov4ml.ProvMLLogger()
    fit = trainer(logger, max_epochs=1, limit_val_batches=0)
    fit.fit(Told(), digits(), digits())
    prov4ml.log_flops_per_epoch("epoch", fit.lightning_module, digits(), "Training")
    logger.finalize("success")
    logger.close() if hasattr(logger, "close") else prov4ml.end_run()
    (found,) = prov4ml.list_provjson_in_proj(".")
    assert prov4ml.get_metric(found, "flops")["value"].tolist() == [2 * 8 * 64 * 10] * 4
    assert prov4ml.get_metric(found, "epoch")["value"].tolist() == [32 * 2 * 64 * 10]
