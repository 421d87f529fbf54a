"""FlopsMonitor in real trainings: counts by hand, speeds by the clock."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from lightning.pytorch import Callback
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

import prov4ml
from provml_lightning.callbacks import work
from provml_lightning.errors import (
    ConfigurationError,
    ProvMLWarning,
    RecordDroppedWarning,
    SamplerUnavailableError,
)
from tests.spending import has, run_of, where
from tests.training import Digits, digits, trainer

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.filterwarnings("ignore:You defined a `validation_step`")

IMAGE = 2 * 64 * 10  # one linear layer of 64 inputs and 10 outputs, a multiply-add is two


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Counted(Digits):
    """Digits with a forward, which is what is counted."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layer(images)


def uneven() -> DataLoader[Any]:
    """Thirty images: three batches of eight and one of six."""
    data = TensorDataset(torch.rand(30, 64), torch.zeros(30, dtype=torch.long))
    return DataLoader(data, batch_size=8)


def values(logger: Any, name: str, context: str = "Training") -> list[float]:
    return list(prov4ml.get_metric(run_of(logger), name, context)["value"])


def fit(model: Any, *callbacks: Callback, **options: Any) -> prov4ml.ProvMLLogger:
    logger = prov4ml.ProvMLLogger()
    trainer(logger, callbacks=list(callbacks), **options).fit(model, uneven(), digits())
    return logger


def test_the_flops_of_an_epoch_are_those_of_all_its_batches_the_short_one_too() -> None:
    logger = fit(Counted(), prov4ml.FlopsMonitor())

    assert values(logger, "flops") == [30 * IMAGE, 30 * IMAGE]
    assert values(logger, "flops", "Validation") == [32 * IMAGE, 32 * IMAGE]
    assert where(logger, "flops", "Training") == [(3, 0), (7, 1)]
    told = prov4ml.list_metrics(run_of(logger), "Training").set_index("label")[["unit", "source"]]
    assert told.loc["flops"].tolist() == ["FLOP", "flops.meta"]
    assert told.loc["flops_per_second"].tolist() == ["FLOP/s", "flops.meta+perf_counter"]
    assert told.loc["batches_per_second"].tolist() == ["1/s", "perf_counter"]
    assert told.loc["samples_per_second"].tolist() == ["1/s", "perf_counter"]


def test_the_flops_of_steps_are_those_of_their_batches() -> None:
    logger = fit(Counted(), prov4ml.FlopsMonitor("step", 3, ["Training"]), max_epochs=1)

    assert values(logger, "flops") == [24 * IMAGE, 6 * IMAGE]
    assert where(logger, "flops", "Training") == [(2, 0), (3, 0)]
    assert not has(logger, "flops", "Validation")


def test_speeds_are_amounts_over_the_same_measured_time() -> None:
    class Clocking(Callback):
        def __init__(self) -> None:
            self.began = self.ended = 0.0

        def on_train_start(self, *_: Any) -> None:
            self.began = time.perf_counter()

        def on_train_epoch_end(self, *_: Any) -> None:
            self.ended = time.perf_counter()

    class Slow(Counted):
        def training_step(self, batch: Any) -> torch.Tensor:
            time.sleep(0.02)
            return super().training_step(batch)

    before, after = Clocking(), Clocking()
    options = {"max_epochs": 1, "limit_val_batches": 0}
    logger = fit(Slow(), before, prov4ml.FlopsMonitor(), after, **options)

    (flops,), (speed,) = values(logger, "flops"), values(logger, "flops_per_second")
    (batches,), (samples,) = (
        values(logger, f"{name}_per_second") for name in ("batches", "samples")
    )
    seconds = flops / speed
    assert 4 / batches == pytest.approx(seconds)
    assert 30 / samples == pytest.approx(seconds)
    assert 4 * 0.02 < seconds < after.ended - before.began


def test_neither_validation_nor_the_counting_is_in_the_time_of_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class SlowlyValidated(Counted):
        def validation_step(self, batch: Any) -> None:
            time.sleep(0.5)
            super().validation_step(batch)

    count = work.count_batch

    def slowly(*arguments: Any) -> Any:
        time.sleep(0.5)
        return count(*arguments)

    monkeypatch.setattr(work, "count_batch", slowly)
    monitor = prov4ml.FlopsMonitor(contexts=["Training"])
    logger = fit(SlowlyValidated(), monitor, max_epochs=1, limit_val_batches=2)

    (flops,), (speed,) = values(logger, "flops"), values(logger, "flops_per_second")
    assert flops == 30 * IMAGE
    assert flops / speed < 1.0  # of the five batches' 3.0 s


def test_a_module_without_forward_is_one_warning_and_its_speed_is_told_all_the_same() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ProvMLWarning)
        logger = fit(Digits(), prov4ml.FlopsMonitor("step"))

    (told,) = [each for each in caught if issubclass(each.category, ProvMLWarning)]
    assert "'flops' were not counted: Digits.forward failed" in str(told.message)
    assert not has(logger, "flops")
    assert len(values(logger, "samples_per_second")) == 8


def test_an_interval_with_a_batch_that_could_not_be_counted_has_no_flops() -> None:
    class Choosy(Counted):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            if len(images) == 6:
                raise ValueError("six is not enough")
            return super().forward(images)

    with pytest.warns(RecordDroppedWarning, match="six is not enough"):
        logger = fit(Choosy(), prov4ml.FlopsMonitor())
    assert not has(logger, "flops", "Training")
    assert values(logger, "flops", "Validation") == [32 * IMAGE] * 2
    with pytest.warns(RecordDroppedWarning, match="six is not enough"):
        logger = fit(Choosy(), prov4ml.FlopsMonitor("step", contexts=["Training"]))
    assert values(logger, "flops") == [8 * IMAGE] * 6


def test_batches_that_do_not_tell_their_size_leave_samples_out() -> None:
    class Words(Counted):
        def training_step(self, batch: Any) -> torch.Tensor:
            return self.layer(torch.ones(len(batch), 64)).mean()

        def forward(self, batch: Sequence[str]) -> torch.Tensor:
            return self.layer(torch.ones(len(batch), 64))

    logger = prov4ml.ProvMLLogger()
    words: Any = DataLoader(["one", "two", "three"], batch_size=2)  # type: ignore[arg-type]
    trainer(logger, callbacks=[prov4ml.FlopsMonitor()], max_epochs=1).fit(Words(), words)

    assert values(logger, "flops") == [3 * IMAGE]
    assert has(logger, "batches_per_second")
    assert not has(logger, "samples_per_second")


def test_thop_counts_macs_and_they_are_called_so() -> None:
    logger = fit(Counted(), prov4ml.FlopsMonitor(engine="thop"))

    assert values(logger, "macs") == [30 * IMAGE / 2] * 2
    told = prov4ml.list_metrics(run_of(logger), "Training").set_index("label")["unit"]
    assert told.loc[["macs", "macs_per_second"]].tolist() == ["MAC", "MAC/s"]
    assert not has(logger, "flops")


def test_an_engine_that_cannot_work_is_refused_when_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ConfigurationError, match=r"engine='guess'.*'auto', 'meta', 'real', 'thop'"):
        prov4ml.FlopsMonitor(engine="guess")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "thop", None)
    with pytest.raises(SamplerUnavailableError, match="thop cannot be imported"):
        prov4ml.FlopsMonitor(engine="thop")


def test_it_waits_for_the_device_only_where_it_was_asked_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(torch.cpu, "synchronize", lambda: waits.append(time.perf_counter()))
    options = {"max_epochs": 1, "limit_val_batches": 0}
    fit(Counted(), prov4ml.FlopsMonitor("step"), **options)
    assert waits == []
    fit(Counted(), prov4ml.FlopsMonitor(synchronize=True), **options)
    assert len(waits) == 2  # where the epoch begins and where it ends


def test_other_loggers_get_what_the_run_would() -> None:
    monitor = prov4ml.FlopsMonitor()
    trainer(CSVLogger("csv"), callbacks=[monitor], max_epochs=1).fit(Counted(), uneven())

    header, *rows = Path("csv/lightning_logs/version_0/metrics.csv").read_text().splitlines()
    place = header.split(",").index("FlopsMonitor.Training/flops")
    assert [row.split(",")[place] for row in rows if row.split(",")[place]] == ["38400.0"]


def test_two_runs_and_the_rest_of_a_failed_epoch() -> None:
    class Failing(Counted):
        def training_step(self, batch: Any) -> torch.Tensor:
            if self.global_step == 2:
                raise ValueError("enough")
            return super().training_step(batch)

    pair = prov4ml.ProvMLLogger("one"), prov4ml.ProvMLLogger("two")
    teacher = trainer(*pair, callbacks=[prov4ml.FlopsMonitor()])
    with pytest.raises(ValueError, match="enough"):
        teacher.fit(Failing(), uneven())
    assert [values(logger, "flops") for logger in pair] == [[16 * IMAGE], [16 * IMAGE]]
