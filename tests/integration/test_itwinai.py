"""Beside the real itwinai: its collection, its bridge to Lightning, its pipelines."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import torch

import prov4ml
from tests.training import Digits, digits, trainer

itwinai = pytest.importorskip("itwinai.loggers", reason="itwinai is not installed")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


def values(logger: Any, name: str, context: str | None = None) -> list[float]:
    return list(prov4ml.get_metric(logger.log_dir, name, context)["value"])


def test_it_is_one_of_itwinais_loggers() -> None:
    logger = prov4ml.ProvMLItwinAILogger()
    assert isinstance(logger, itwinai.Logger)
    assert issubclass(prov4ml.ProvMLItwinAILogger, itwinai.LogMixin)
    assert itwinai.get_mlflow_logger(logger) is None


@pytest.mark.parametrize("call", ["log", "destroy"])
def test_it_speaks_as_itwinais_own_loggers_do(call: str, caplog: pytest.LogCaptureFixture) -> None:
    said = []
    for logger in (itwinai.ConsoleLogger(), prov4ml.ProvMLItwinAILogger(create_svg=False)):
        name = type(logger).__name__
        with pytest.raises(RuntimeError) as raised:
            logger.log(1, "a") if call == "log" else logger.destroy_logger_context()
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            logger.create_logger_context()
            logger.create_logger_context()
        said.append([text.replace(name, "X") for text in (str(raised.value), *caplog.messages)])
    assert said[0] == said[1]


def test_in_a_collection_it_keeps_what_all_loggers_are_told() -> None:
    ours = prov4ml.ProvMLItwinAILogger(log_freq=2, create_svg=False)
    together = itwinai.LoggersCollection([itwinai.ConsoleLogger(), ours])
    with together.start_logging(rank=0):
        together.save_hyperparameters({"lr": 0.1})
        for batch in range(4):
            together.log(float(batch), "train_loss", step=batch, batch_idx=batch, other=1)
        together.log("text", "note", kind="text")
    assert values(ours, "train_loss", "Training") == [0.0, 2.0]
    assert prov4ml.get_parameter(ours.log_dir, "lr", "value") == 0.1
    assert Path(ours.log_dir, "artifacts", "note.txt").read_text() == "text"
    with pytest.raises(ValueError, match="multiple loggers of the same type"):
        itwinai.LoggersCollection([ours, prov4ml.ProvMLItwinAILogger()])


def test_a_collection_that_fails_leaves_a_failed_run() -> None:
    ours = prov4ml.ProvMLItwinAILogger(create_svg=False)
    together = itwinai.LoggersCollection([ours])
    with pytest.raises(RuntimeError, match="no model"), together.start_logging():
        _fail()
    assert prov4ml.list_parameters(ours.log_dir)["provml:status"] == "failed"


def _fail() -> None:
    raise RuntimeError("no model")


@pytest.mark.parametrize("skip_finalize", [True, False])
def test_itwinais_bridge_to_lightning_carries_it(skip_finalize: bool) -> None:
    from itwinai.torch.loggers import ItwinaiLogger

    ours = prov4ml.ProvMLItwinAILogger(create_svg=False)
    bridge = ItwinaiLogger(ours, log_model="all", skip_finalize=skip_finalize)
    teacher = trainer(bridge, enable_checkpointing=True)
    teacher.fit(Digits(), digits(), digits())
    first = ours.log_dir
    teacher.test(Digits(), digits(), verbose=False)
    if skip_finalize:
        ours.destroy_logger_context()

    # Without it every entry point is a context, and so a run, of its own.
    assert (first == ours.log_dir) == skip_finalize
    assert len(prov4ml.get_metric(first, "loss")) == 8
    assert len(prov4ml.get_metric(first, "val_loss", "Validation")) == 2
    assert values(ours, "test_loss", "Testing") != []
    assert prov4ml.get_parameter(first, "learning_rate", "value") == 0.1
    copies = sorted(path.name for path in Path(first, "artifacts").iterdir())
    assert [name for name in copies if name.endswith(".ckpt")] == [
        "epoch=0-step=4.ckpt",
        "epoch=1-step=8.ckpt",
    ]


# itwinai 0.4.2 calls jsonargparse as older ones were called.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_pipelines_configuration_names_it_by_its_path(tmp_path: Path) -> None:
    from itwinai.components import BaseComponent, monitor_exec
    from itwinai.parser import ArgumentParser
    from itwinai.pipeline import Pipeline

    class Step(BaseComponent):
        """A step that logs, as a trainer does."""

        def __init__(self, logger: itwinai.Logger) -> None:
            super().__init__()
            self.logger = logger

        @monitor_exec
        def execute(self, value: float) -> float:
            with self.logger.start_logging():
                self.logger.log(value, "train_loss", step=0)
            return value

    (tmp_path / "config.yaml").write_text(
        """
logger:
  class_path: prov4ml.ProvMLItwinAILogger
  init_args:
    experiment_name: piped
    log_freq: batch
    log_on_workers: [0, 1]
    create_svg: false
"""
    )
    parser = ArgumentParser()
    parser.add_argument("--logger", type=itwinai.Logger)
    chosen = parser.instantiate_classes(parser.parse_path(tmp_path / "config.yaml"))
    Pipeline({"train": Step(chosen.logger)}).execute(0.5)
    assert chosen.logger.log_on_workers == [0, 1]
    assert Path(chosen.logger.log_dir).parts[-2:] == ("piped", "version_0")
    assert values(chosen.logger, "train_loss", "Training") == [0.5]
