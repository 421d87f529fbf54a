"""ProvMLLogger: the whole record of a training from one line in the Trainer."""

from __future__ import annotations

import sys
import weakref
from argparse import Namespace
from collections.abc import Mapping
from os import PathLike
from typing import Any

from lightning.fabric.loggers.logger import rank_zero_experiment
from lightning.fabric.utilities.rank_zero import rank_zero_only
from lightning.pytorch.loggers import CSVLogger
from typing_extensions import override

from provml_lightning.domain.carbon import CarbonSettings
from provml_lightning.domain.settings import (
    CompressorType,
    MetricsType,
    RunSettings,
    project_folder,
)
from provml_lightning.errors import RecordError
from provml_lightning.loggers.lineage.parts import chosen_parts
from provml_lightning.loggers.lineage.story import Story
from provml_lightning.loggers.lineage.watcher import Lineage
from provml_lightning.loggers.parameters import keep_hyperparameters
from provml_lightning.loggers.recording import excused, lightning_rank, on_recording_ranks
from provml_lightning.loggers.stages import (
    context_of_name,
    context_of_stage,
    meaning_of,
    split_epoch,
    stage_and_epoch,
)
from provml_lightning.loggers.trainers import Trainers, trainer_of_setup
from provml_lightning.loggers.versioned import VersionedLogger
from provml_lightning.runtime.active import BUSY_RUNS, current, enter
from provml_lightning.runtime.faults import warn
from provml_lightning.runtime.run import Run
from provml_lightning.runtime.silent import SilentRun

__all__ = ["ProvMLLogger"]


class ProvMLLogger(VersionedLogger):
    """Records a training in W3C PROV and Parquet: ``Trainer(logger=[ProvMLLogger()])``.

    The run lies at ``save_dir/name/version_N``, where ModelCheckpoint puts its files too. It
    opens when the Trainer first uses the logger, on rank zero; a logger that is never used writes
    nothing. Its documents are written after every ``fit``, ``validate``, ``test`` and ``predict``
    and when the process ends; logging may go on between. While the run is open, every call of
    ``prov4ml`` goes to it.

    Args:
        name: The experiment; None or "" puts the versions into ``save_dir`` itself.
        version: A number, or a text that names the folder as it is. None: the highest number plus
            one. A version that exists is continued.
        save_dir: The project's folder; None: ``prov``.
        prefix: Put before every metric's name, with a ``-``.
        flush_logs_every_n_steps: Values that may wait in memory where files cannot be mapped [1].
            Elsewhere every value is safe from the process's death at once.
        prov_user_namespace: Namespace of what the document names; a bare host is made an IRI.
        collect_all_processes: Every rank records, not rank zero alone.
        save_after_n_logs: The documents' name of ``flush_logs_every_n_steps``, which it replaces.
        metrics_file_type: Form of the metrics files.
        csv_separator: Separator of the CSV form, one character.
        use_compressor: Compressor of the metrics files; None or True: the form's own choice,
            False: none.
        disable_codecarbon: Tell no emissions; ``log_carbon_metrics`` keeps the energies alone.
        unify_experiments: At the end of the run, write the documents of all runs of the
            experiment into one, ``collection_<experiment>.json``.
        country: Where the electricity comes from, by ISO code or name: emissions are told for it.
            None: ``PROVML_COUNTRY``, and without that the energies are told alone.
        region: State, province or bidding zone, for countries of which CodeCarbon has them.
        carbon_intensity: Emissions of the electricity, if you know them better [gCO2eq/kWh].
        pue: Power usage effectiveness of the data centre, which emissions are multiplied by [1].
        strict: Faults of the disk, and values that are not numbers, raise instead of warning.
        lineage: What the Trainer knows is recorded too: True for all, False for nothing, or a list
            of "stages", "epochs", "trainer", "seeds", "optimizers", "callbacks", "data", "model"
            and "checkpoints".

    Raises:
        ConfigurationError: An argument cannot work.
        UnsupportedFormatError: The form is unknown, or the compressor does not fit it.
    """

    LOGGER_JOIN_CHAR = "-"

    def __init__(
        self,
        name: str | None = "lightning_logs",
        version: int | str | None = None,
        save_dir: str | PathLike[str] | None = None,
        prefix: str = "",
        flush_logs_every_n_steps: int = 100,
        *,
        prov_user_namespace: str | None = None,
        collect_all_processes: bool = False,
        save_after_n_logs: int | None = None,
        metrics_file_type: MetricsType | str = MetricsType.PARQUET,
        csv_separator: str = ",",
        use_compressor: CompressorType | str | bool | None = None,
        disable_codecarbon: bool = False,
        unify_experiments: bool = False,
        country: str | None = None,
        region: str | None = None,
        carbon_intensity: float | None = None,
        pue: float | None = None,
        strict: bool = False,
        lineage: bool | list[str] = True,
    ) -> None:
        settings = RunSettings(
            experiment_name=name or "lightning_logs",
            prov_user_namespace=prov_user_namespace,
            provenance_save_dir=project_folder(save_dir),
            collect_all_processes=collect_all_processes,
            save_after_n_logs=(
                flush_logs_every_n_steps if save_after_n_logs is None else save_after_n_logs
            ),
            metrics_file_type=MetricsType.of(metrics_file_type),
            csv_separator=csv_separator,
            use_compressor=CompressorType.of(use_compressor),
            carbon=CarbonSettings(
                country=country,
                region=region,
                carbon_intensity=carbon_intensity,
                pue=pue,
                disabled=disable_codecarbon,
            ),
            unify_experiments=unify_experiments,
            strict=strict,
        )
        super().__init__(name or "", version, settings)
        _stand_for_csv_logger_of_pytorch_lightning()
        self._prefix = prefix
        self._trainers = Trainers()
        story = Story(chosen_parts(lineage), self._opened, self._trainers, Lineage)
        self._lineage = Lineage(story) if story.parts else None

    @property
    def lineage_callback(self) -> Lineage | None:
        """The callback that hears what the Trainer does; None where nothing of that is wanted."""
        return self._lineage

    @property
    def experiment(self) -> Any:
        """The run, opened on first use; on ranks that do not record, what takes every call."""
        if self.records_here:
            if (trainer := trainer_of_setup(sys._getframe(1))) is not None:  # noqa: SLF001
                self._meet(trainer)
            return self._opened()
        if current() is None:
            # The module's own prov4ml calls on this rank go nowhere, instead of waiting.
            enter(SilentRun(lightning_rank()))
        return self._experiment

    @override
    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Keep values; Lightning calls this for everything that ``self.log`` sends to loggers."""
        run = self._run  # open at every step but the first, and then nothing else need be asked
        if run is None or not run.is_open or run.is_forked:
            if not self.records_here:
                return
            run = self._opened()
        try:
            values, epoch = split_epoch(metrics)
        except Exception as error:  # noqa: BLE001  a foreign name or mapping may raise anything
            told = f"{type(error).__name__}: {error}"
            run.excuse("metrics", RecordError(f"values that cannot be listed: {told}"))
            return
        stage, epoch = stage_and_epoch(self._trainers.current, epoch)
        before = f"{self._prefix}{self.LOGGER_JOIN_CHAR}" if self._prefix else ""
        if stage is not None:
            named = {f"{before}{name}": each for name, each in values.items()} if before else values
            self._keep(run, named, stage, step, epoch)
            return
        for name, value in values.items():
            self._keep(run, {f"{before}{name}": value}, context_of_name(name), step, epoch)

    @override
    @rank_zero_only
    def log_hyperparams(
        self,
        params: Mapping[str, Any] | Namespace | None = None,
        metrics: Mapping[str, Any] | None = None,
        step: int | None = None,
    ) -> None:
        """Keep hyperparameters, nested names joined by ``/``; Lightning calls this at each start.

        Those of a module that is only tested do not stand for the ones that a training had: where
        they differ they are the stage's. ``metrics`` are values to keep with them, at ``step``, as
        TensorBoardLogger takes them.
        """
        trainer = self._trainers.current
        stage = None if trainer is None else context_of_stage(trainer)
        run = self._opened()
        with excused(run, "hyperparameters"):
            keep_hyperparameters(run, params, stage)
        if metrics:
            self.log_metrics(metrics, step)

    @override
    @on_recording_ranks
    def log_graph(self, model: Any, input_array: Any = None) -> None:
        """Learn which Trainer works; Lightning calls this at the start of every entry point."""
        try:
            trainer = model.trainer
            weakref.ref(trainer)
        except (RuntimeError, AttributeError, TypeError):  # Fabric, or a module of no Trainer
            self._trainers.forget()
            return
        self._meet(trainer)
        if self._lineage is not None:
            self._lineage.story.enter(trainer, model)

    @override
    def after_save_checkpoint(self, checkpoint_callback: Any) -> None:
        """Keep a checkpoint as a version of the model; Lightning calls this on rank zero."""
        if self._lineage is not None:
            self._lineage.story.saved(checkpoint_callback)

    @override
    @on_recording_ranks
    def finalize(self, status: str) -> None:
        """Write the documents; Lightning calls this at the end of every entry point.

        The run stays open. Nothing is raised: an exception here would replace the user's own.
        """
        is_within_another = self._trainers.part()
        run = self._run
        if run is None or not run.is_open:
            return
        if not is_within_another:
            BUSY_RUNS.discard(run)
        error = sys.exc_info()[1] if status == "failed" else None
        try:
            run.snapshot(meaning_of(status, error), error)
        except Exception as failure:  # noqa: BLE001  whatever it is, the user's own error is worth more
            warn(f"{run.directory.name}: its documents were not written: {failure}")

    @property
    @rank_zero_experiment
    def _experiment(self) -> Run:
        return self._opened()

    def _keep(
        self, run: Run, values: dict[str, Any], context: str | None, step: Any, epoch: Any
    ) -> None:
        """Keep values; where another thread ends the run just now, it goes on."""
        while values := run.record_metrics(values, context, step, epoch):
            run = self._opened()

    def _meet(self, trainer: Any) -> None:
        """Learn which Trainer works, and hear of what it does then."""
        self._trainers.follow(trainer)
        if context_of_stage(trainer) is not None:
            BUSY_RUNS.add(self._opened())
        if self._lineage is not None:
            self._lineage.join(trainer)
            self._lineage.story.listen(trainer)

    @override
    def _stay_with(self, trainer: Any) -> None:
        self._trainers.follow(trainer)
        if self._lineage is not None:
            self._lineage.stay_with(trainer)


# Trainer.log_dir is the run's folder for instances of CSVLogger and TensorBoardLogger alone, and
# save_dir for every other class (lightning 2.6.6). There LightningCLI writes config.yaml, which a
# second run would then find in the way. A virtual subclass inherits nothing else.
CSVLogger.register(ProvMLLogger)


def _stand_for_csv_logger_of_pytorch_lightning() -> None:
    """Do the same for the Trainer of the package pytorch_lightning, which has classes of its own.

    It is never imported here: who trains with it has done so before he builds a logger.
    """
    loggers = sys.modules.get("pytorch_lightning.loggers")
    if loggers is not None:
        loggers.CSVLogger.register(ProvMLLogger)
