"""ProvMLItwinAILogger: one logger for Lightning's Trainer and for itwinai's trainers."""

from __future__ import annotations

from os import PathLike
from typing import Any, Literal

from typing_extensions import override

from provml_lightning.domain.settings import CompressorType, MetricsType
from provml_lightning.loggers.contexts import ContextLogger
from provml_lightning.loggers.items import Items, each_named, require_known
from provml_lightning.loggers.itwinai_base import Base, check_initialized
from provml_lightning.loggers.kinds import KINDS, keep_value
from provml_lightning.loggers.parameters import keep_parameters
from provml_lightning.loggers.provml import ProvMLLogger
from provml_lightning.loggers.recording import excused
from provml_lightning.loggers.workers import check_workers
from provml_lightning.runtime.active import aimed_at
from provml_lightning.runtime.exporting import draw
from provml_lightning.runtime.run import Run

__all__ = ["ProvMLItwinAILogger"]


class ProvMLItwinAILogger(ContextLogger):
    """Records a training of Lightning's or of itwinai's, over the same core as ProvMLLogger.

    In ``Trainer(logger=[ProvMLItwinAILogger()])`` it is a :class:`ProvMLLogger`: nothing else is
    needed, ``log_freq`` and ``log_on_workers`` say nothing there. As itwinai's logger it is given
    to ``TorchTrainer(logger=...)`` or ``LoggersCollection([...])``; a run is what lies between
    ``create_logger_context`` and ``destroy_logger_context``. A context that is never destroyed,
    such as after an exception, is ended with the process.

    itwinai itself is not needed. Where it is installed, this is one of its loggers.

    Args:
        prov_user_namespace: Namespace of what the document names; a bare host is made an IRI.
            None: one of the run's own.
        experiment_name: The experiment.
        provenance_save_dir: The project's folder.
        save_after_n_logs: Values that may wait in memory where files cannot be mapped [1].
        create_graph: Write the graph as DOT when the run ends.
        create_svg: Draw it as SVG too; without Graphviz that is a warning.
        log_freq: Which items that come with a ``batch_idx`` are kept: "batch" all, "epoch" none,
            n every n-th [1].
        log_on_workers: The global ranks that log: one, a list, or -1 for all. They share one run.
        name: The same as ``experiment_name``, as ProvMLLogger calls it; it is what holds.
        version: A number, or a text that names the folder as it is. None: the highest number plus
            one. A version that exists is continued.
        save_dir: The same as ``provenance_save_dir``; it is what holds.
        prefix: Put before every metric's name, with a ``-``.
        flush_logs_every_n_steps: The same as ``save_after_n_logs``; it is what holds [1].
        metrics_file_type: Form of the metrics files.
        csv_separator: Separator of the CSV form, one character.
        use_compressor: Compressor of the metrics files; None or True: the form's own choice,
            False: none.
        disable_codecarbon: Tell no emissions; the kind "carbon" keeps the energies alone.
        country: Where the electricity comes from, by ISO code or name: emissions are told for it.
            None: ``PROVML_COUNTRY``, and without that the energies are told alone.
        region: State, province or bidding zone, for countries of which CodeCarbon has them.
        carbon_intensity: Emissions of the electricity, if you know them better [gCO2eq/kWh].
        pue: Power usage effectiveness of the data centre, which emissions are multiplied by [1].
        strict: Faults of the disk, and items that cannot be kept, raise instead of warning.
        lineage: What a Lightning Trainer knows is recorded too, as ProvMLLogger takes it.

    Raises:
        ConfigurationError: An argument cannot work.
        UnsupportedFormatError: The form is unknown, or the compressor does not fit it.
        ValueError: ``log_freq`` is none that itwinai knows.
    """

    supported_kinds = ("metric", *KINDS, "prov_documents")

    def __init__(
        self,
        prov_user_namespace: str | None = None,
        experiment_name: str = "experiment_name",
        provenance_save_dir: str | PathLike[str] = "mllogs/prov_logs",
        save_after_n_logs: int | None = 100,
        create_graph: bool | None = True,
        create_svg: bool | None = True,
        log_freq: int | Literal["epoch", "batch"] = "epoch",
        log_on_workers: int | list[int] = 0,
        *,
        name: str | None = None,
        version: int | str | None = None,
        save_dir: str | PathLike[str] | None = None,
        prefix: str = "",
        flush_logs_every_n_steps: int | None = None,
        metrics_file_type: MetricsType | str = MetricsType.PARQUET,
        csv_separator: str = ",",
        use_compressor: CompressorType | str | bool | None = None,
        disable_codecarbon: bool = False,
        country: str | None = None,
        region: str | None = None,
        carbon_intensity: float | None = None,
        pue: float | None = None,
        strict: bool = False,
        lineage: bool | list[str] = True,
    ) -> None:
        asked = (flush_logs_every_n_steps, save_after_n_logs, 100)
        ProvMLLogger.__init__(
            self,
            name=experiment_name if name is None else name,
            version=version,
            save_dir=provenance_save_dir if save_dir is None else save_dir,
            prefix=prefix,
            flush_logs_every_n_steps=next(number for number in asked if number is not None),
            prov_user_namespace=prov_user_namespace,
            metrics_file_type=metrics_file_type,
            csv_separator=csv_separator,
            use_compressor=use_compressor,
            disable_codecarbon=disable_codecarbon,
            country=country,
            region=region,
            carbon_intensity=carbon_intensity,
            pue=pue,
            strict=strict,
            lineage=lineage,
        )
        ranks = check_workers(log_on_workers)
        Base.__init__(self, savedir=self.save_dir, log_freq=log_freq, log_on_workers=ranks)
        self.create_graph = bool(create_graph)
        self.create_svg = bool(create_svg)
        self._items = Items()

    @override
    @check_initialized
    def save_hyperparameters(self, params: Any) -> None:
        """Keep hyperparameters, nested names joined by ``/``."""
        if self.should_log():
            with excused(run := self._opened(), "hyperparameters"):
                keep_parameters(run, params)

    @override
    @check_initialized
    def log(
        self,
        item: Any,
        identifier: str | list[str] | None,
        kind: str = "metric",
        step: int | None = None,
        batch_idx: int | None = None,
        context: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep an item, or a list of items with a list of names.

        ==================  ======================================================================
        kind                becomes
        ==================  ======================================================================
        ``metric``          a value of a metric
        ``param``           a parameter
        ``artifact``        a copy of a file or folder; any other value is written to a file
        ``figure``          a Matplotlib figure as PNG, a Plotly figure as its JSON
        ``image``           a Pillow image, or an array of pixels, as PNG
        ``text``, ``dict``  a text file, a JSON file
        ``torch``           a data set; else a file of weights, or of a tensor
        ``model``           the next version of a model
        ``best_model``      a model with its numbers and weights
        ``watch``           a model's numbers and layers
        ``dataset``         a data set with its true numbers
        ``flops_pb``        FLOPs of a batch; ``item=(model, batch)``
        ``flops_pe``        FLOPs of an epoch; ``item=(model, dataset)``
        ``system``          the system metrics since the last time
        ``carbon``          the emissions since the last time
        ``execution_time``  the time since the run began, as a metric [s]
        ``prov_documents``  the documents, written now
        ==================  ======================================================================

        What cannot be kept is a warning and a note in the document, unless the logger is strict.

        Args:
            item: What is kept.
            identifier: Its name, any text.
            kind: What it is; kinds that only other loggers of itwinai know are passed over.
            step: Whole number, or None [1].
            batch_idx: Number of the batch that it comes from, see ``log_freq`` [1].
            context: What it belongs to, in any case. None: what a Lightning Trainer is doing;
                without one, what the name says (``train_``, ``validation_``, ``test_``), except
                for a parameter.
            **kwargs: What other loggers are told; nothing of it is kept.

        Raises:
            ConfigurationError: No logger knows the kind.
            RuntimeError: There is no context.
        """
        del kwargs
        if kind not in self.supported_kinds:
            require_known(kind)
        elif not self.should_log(batch_idx):
            return
        elif kind == "prov_documents":
            self._write_documents(self._opened())
        else:
            run, trainer = self._opened(), self._trainers.current
            before = f"{self._prefix}{self.LOGGER_JOIN_CHAR}" if self._prefix else ""
            with excused(run, kind):
                for one, name in each_named(item, identifier, kind):
                    key = before + name if kind == "metric" else name
                    self._items.keep(run, kind, one, key, context, step, trainer)

    @override
    @check_initialized
    def serialize(self, obj: Any, identifier: str) -> str:
        """Write an object to a file that any tool can read, as an artifact of the run.

        Never as a pickle; what has no form of its own is written as its text.

        Returns:
            The path of the file; empty where there is none, as on a rank that does not log.

        Raises:
            RuntimeError: There is no context.
        """
        if not self.should_log():
            return ""
        path = None
        with excused(run := self._opened(), "serialize"), aimed_at(run):
            path = keep_value(obj, str(identifier), None, None)
        return str(path or "")

    def _write_documents(self, run: Run) -> None:
        with excused(run, "documents"):
            run.snapshot()
            if run.compiles and (self.create_graph or self.create_svg):
                draw(run.layout, svg=self.create_svg)
