"""Where a monitor's values go: to the runs of a Trainer's loggers, else to the loggers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lightning.pytorch import Trainer
from lightning.pytorch.loggers import Logger
from lightning.pytorch.loggers.logger import DummyLogger

from provml_lightning.callbacks.sinks import LoggersSink, RunSink, Sink
from provml_lightning.errors import ConfigurationError
from provml_lightning.runtime.active import current
from provml_lightning.runtime.run import Run

__all__ = ["sinks_of"]


def sinks_of(trainer: Trainer, monitor: str) -> list[Sink]:
    """Return where this process's values go: nowhere on ranks that do not record.

    Every run of the Trainer's loggers; without one its other loggers, on rank zero; without any
    logger the run that is open.

    Raises:
        ConfigurationError: There is nothing that could take a value.
    """
    found = [_run_of(logger) for logger in trainer.loggers if isinstance(_experiment(logger), Run)]
    if found:
        return list(found)
    if not trainer.loggers:
        return _open_run(monitor)
    # fast_dev_run and the tuner put one in the place of the user's loggers.
    others = [logger for logger in trainer.loggers if not isinstance(logger, DummyLogger)]
    if not others or not trainer.is_global_zero:
        return []
    folder = Path(trainer.default_root_dir)
    return [LoggersSink(others, monitor, folder if folder.is_dir() else Path.cwd())]


def _run_of(logger: Logger) -> RunSink:
    return RunSink(lambda: _experiment(logger))


def _experiment(logger: Logger) -> Any:
    return getattr(logger, "experiment", None)


def _open_run(monitor: str) -> list[Sink]:
    run = current()
    if run is None:
        raise ConfigurationError(
            f"{monitor} has nowhere to put its values: the Trainer has no logger, as logger=False"
            " and barebones=True make it, and no run is open. Give it one, such as"
            " logger=[prov4ml.ProvMLLogger()], or leave the monitor out"
        )
    return [RunSink(lambda: run)] if isinstance(run, Run) else []
