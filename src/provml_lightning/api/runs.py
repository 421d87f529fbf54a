"""Begin and end a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.domain.carbon import CarbonSettings
from provml_lightning.domain.records import Status
from provml_lightning.domain.settings import (
    CompressorType,
    MetricsType,
    RunSettings,
    project_folder,
)
from provml_lightning.runtime.active import AnyRun, current, enter, innermost, leave
from provml_lightning.runtime.exporting import exports_of, try_all
from provml_lightning.runtime.opening import open_run
from provml_lightning.runtime.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

__all__ = ["end_run", "start_run"]


def start_run(
    experiment_name: str,
    prov_user_namespace: str | None = None,
    provenance_save_dir: str | PathLike[str] | None = None,
    collect_all_processes: bool = False,
    save_after_n_logs: int = 100,
    rank: int | None = None,
    metrics_file_type: MetricsType | str = MetricsType.PARQUET,
    csv_separator: str = ",",
    use_compressor: CompressorType | str | bool | None = None,
    use_run_id: int | None = None,
    *,
    disable_codecarbon: bool = False,
    unify_experiments: bool = False,
    country: str | None = None,
    region: str | None = None,
    carbon_intensity: float | None = None,
    pue: float | None = None,
    strict: bool = False,
) -> AnyRun:
    """Open a run at ``<provenance_save_dir>/<experiment_name>_<run id>``.

    Every other call goes to the run that was opened last and is still open. A run that is opened
    inside another is informed by it. The result is a context manager that ends the run.

    Args:
        experiment_name: The experiment, any text; its runs are counted.
        prov_user_namespace: Namespace of what the document names; a bare host such as
            ``www.example.org`` is made an IRI. None: one of the run's own.
        provenance_save_dir: The project's folder; None: ``prov``.
        collect_all_processes: Every rank records, not rank zero alone.
        save_after_n_logs: Values that may wait in memory where files cannot be mapped [1].
            Elsewhere every value is safe from the process's death when its call returns.
        rank: Global rank of this process; None: asked from the process group or the launcher.
        metrics_file_type: Form of the metrics files.
        csv_separator: Separator of the CSV form, one character.
        use_compressor: Compressor of the metrics files; None or True: the form's own choice,
            False: none.
        use_run_id: Continue the run with this number, or make it.
        disable_codecarbon: Tell no emissions; ``log_carbon_metrics`` keeps the energies alone.
        unify_experiments: At the end of the run, write the documents of all runs of the
            experiment into one, ``collection_<experiment>.json`` in the project's folder.
        country: Where the electricity comes from, by ISO code or name: emissions are told for it.
            None: ``PROVML_COUNTRY``, and without that the energies are told alone.
        region: State, province or bidding zone, for countries of which CodeCarbon has them.
        carbon_intensity: Emissions of the electricity, if you know them better [gCO2eq/kWh].
        pue: Power usage effectiveness of the data centre, which emissions are multiplied by [1].
        strict: Storage faults raise instead of warning.

    Returns:
        The run.

    Raises:
        ConfigurationError: An argument cannot work.
        UnsupportedFormatError: The form is unknown, or the compressor does not fit it.
        StorageError: The run's folder or files cannot be made.
    """
    settings = RunSettings(
        experiment_name=experiment_name,
        prov_user_namespace=prov_user_namespace,
        provenance_save_dir=project_folder(provenance_save_dir),
        collect_all_processes=collect_all_processes,
        save_after_n_logs=save_after_n_logs,
        rank=rank,
        metrics_file_type=MetricsType.of(metrics_file_type),
        csv_separator=csv_separator,
        use_compressor=CompressorType.of(use_compressor),
        use_run_id=use_run_id,
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
    run = open_run(settings, parent=current())
    enter(run)
    return run


def end_run(
    create_graph: bool = False,
    create_svg: bool = False,
    crate_ro_crate: bool = False,
    *,
    create_rocrate: bool = False,
) -> None:
    """End the run that was opened last: write everything that people read.

    Args:
        create_graph: Write the provenance graph as DOT, beside the PROV-JSON.
        create_svg: Draw it as SVG; writes the DOT too.
        crate_ro_crate: Make the run an RO-Crate and pack it into a zip beside it; the documents'
            other spelling is ``create_rocrate``.
        create_rocrate: The same.

    Raises:
        NoActiveRunError: No run is open.
        StorageError: The disk did not take it; what was logged is safe in the journal folder.
        ExportError: A graph, picture or crate failed; everything else was written.
    """
    crate = crate_ro_crate or create_rocrate
    run = innermost()
    leave(run)
    steps: list[Callable[[], object]] = [lambda: run.close(Status.COMPLETED)]
    if isinstance(run, Run) and run.compiles and (create_graph or create_svg or crate):
        steps += exports_of(run.layout, graph=create_graph, svg=create_svg, crate=crate)
    try_all(steps)
