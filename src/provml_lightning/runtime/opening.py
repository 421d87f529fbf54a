"""How a run gets its place and its first facts."""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provml_lightning.__about__ import __title__, __version__
from provml_lightning.capture.environment import environment_facts
from provml_lightning.domain.records import Opened, Status
from provml_lightning.errors import ConfigurationError, StorageError
from provml_lightning.provenance.vocabulary import require_iri, run_iri
from provml_lightning.runtime.collecting import unify
from provml_lightning.runtime.electricity import electricity_facts
from provml_lightning.runtime.ranks import (
    broadcast,
    global_rank,
    has_process_group,
    world_size,
)
from provml_lightning.runtime.rendezvous import find_note, leave_note, note_path
from provml_lightning.runtime.run import Run
from provml_lightning.runtime.silent import SilentRun
from provml_lightning.runtime.snapshot import write_first_index
from provml_lightning.runtime.surroundings import record_packages, seek_commit
from provml_lightning.storage.formats import open_format
from provml_lightning.storage.index import read_index
from provml_lightning.storage.layout import RunLayout, attach, reserve, run_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from provml_lightning.domain.settings import RunSettings
    from provml_lightning.domain.values import Plain

__all__ = ["agree", "check", "claim", "open_at", "open_run"]


def check(settings: RunSettings) -> None:
    """Raise where something of the settings cannot work, before anything is written.

    Raises:
        ConfigurationError: The namespace is not an IRI, or no carbon intensity is known for the
            country that was told.
        UnsupportedFormatError: The compressor does not fit the metrics file type.
    """
    if settings.prov_user_namespace is not None:
        require_iri(settings.prov_user_namespace)
    electricity_facts(settings.carbon)
    open_format(
        settings.metrics_file_type,
        separator=settings.csv_separator,
        compressor=settings.use_compressor,
    )


def open_run(settings: RunSettings, parent: Run | SilentRun | None = None) -> Run | SilentRun:
    """Open a run at ``<project>/<experiment>_<run id>``; ranks that do not record get a silent one.

    Ranks of one process group agree on the folder by asking rank zero.

    Raises:
        ConfigurationError: A setting cannot work.
        StorageError: The folder or its files cannot be made.
    """
    check(settings)
    rank = global_rank() if settings.rank is None else settings.rank
    if rank != 0 and not settings.collect_all_processes:
        return SilentRun(rank)
    note = _note(settings)
    layout = RunLayout(_shared_directory(settings, rank, note))
    run_id = layout.directory.name.rpartition("_")[2]
    run = open_at(layout, settings, run_id=run_id, rank=rank, parent=parent)
    if note is not None and rank == 0:
        run.finishers.append(lambda: note.unlink(missing_ok=True))
    return run


def open_at(
    layout: RunLayout,
    settings: RunSettings,
    *,
    run_id: str,
    run_uuid: str | None = None,
    rank: int = 0,
    ranks: Collection[int] | None = None,
    parent: Run | SilentRun | None = None,
) -> Run:
    """Open a run in a folder that exists; one that is there already is continued.

    Args:
        layout: Where it lies.
        settings: What it was asked for.
        run_id: Its number or name, unless the folder's run has one.
        run_uuid: Its UUID, unless the folder's run has one; None: a new one.
        rank: Global rank of this process.
        ranks: Those of all processes that write into it; None: what the settings say.
        parent: The run that it is opened inside of.

    Raises:
        ConfigurationError: A folder of the run is a link, which would lead its files elsewhere.
        StorageError: Its files cannot be made or read.
    """
    _refuse_links(layout)
    known = read_index(layout.index)
    if ranks is None:
        ranks = range(world_size() if settings.collect_all_processes else 1)
    opened = Opened(
        time=time.time_ns(),
        experiment=known.experiment if known else settings.experiment_name,
        run_id=known.run_id if known else run_id,
        uuid=known.uuid if known else run_uuid or str(uuid.uuid4()),
        user=(facts := environment_facts()).pop("user", "unknown"),  # type: ignore[arg-type]
        namespace=settings.prov_user_namespace,
        parent=run_iri(parent.opened) if isinstance(parent, Run) else None,
        attributes={**facts, **_about(layout, settings, rank)},
    )
    waiting = settings.save_after_n_logs
    run = Run(layout, opened, rank=rank, ranks=ranks, waiting=waiting, strict=settings.strict)
    if settings.unify_experiments:
        run.finishers.append(lambda: unify(run.directory))
    try:
        if run.compiles:
            write_first_index(layout, opened, _kept(settings))
            record_packages(run)
            seek_commit(run)
    except StorageError as error:
        with suppress(StorageError):
            run.close(Status.FAILED, error)
        raise
    return run


def _refuse_links(layout: RunLayout) -> None:
    for folder in (layout.journal, layout.metrics, layout.artifacts):
        if folder.is_symlink():
            raise ConfigurationError(
                f"{folder} is a link, and what a run writes stays inside it; put the whole project"
                " on the other disk with save_dir= or provenance_save_dir="
            )


def claim(wanted: Path, run_uuid: str, *, otherwise: Path | None) -> RunLayout:
    """Return the place of a run that wants a folder: made, or joined where it may be.

    A folder is a run's once its journal folder was made, by an exclusive ``mkdir``; so one that a
    user made for other files is taken, and no two runs get the same.

    Args:
        wanted: The folder.
        run_uuid: The run; a folder that is a run's is joined where it is this run's.
        otherwise: Where to count on from, as ``<folder>/<stem>``, if the folder is another run's.
            None: join whatever run lies there.

    Raises:
        ConfigurationError: Something that is not a folder stands there.
        StorageError: The folder cannot be made.
    """
    layout = RunLayout(wanted)
    attach(wanted)
    if otherwise is None or attach(layout.journal):
        return layout
    known = read_index(layout.index)
    if known is not None and known.uuid == run_uuid:
        return layout
    while not attach((layout := RunLayout(reserve(otherwise.parent, otherwise.name)[0])).journal):
        pass
    return layout


def agree(make: Callable[[], Path], *, rank: int, lead: int = 0, note: Path | None = None) -> Path:
    """Return the folder that one rank makes, on every rank that is to write into it.

    Args:
        make: Makes it.
        rank: Global rank of this process.
        lead: The rank that makes it.
        note: Where it tells the others; None: through the process group, all of whose ranks must
            then call :func:`~provml_lightning.runtime.ranks.broadcast` or this.

    Raises:
        StorageError: That rank could make none, or could not be asked.
    """
    directory, failure = None, None
    if rank == lead:
        try:
            directory = str(make())
        except StorageError as error:
            failure = error  # told to the others first: they wait for an answer
        if note is not None:
            leave_note(note, directory)
    elif note is not None:
        directory = find_note(note)
    if note is None:
        directory = broadcast(directory, lead)
    if directory is None:
        raise failure or StorageError(
            f"rank {lead} could make no folder for the run; see its error"
        )
    return Path(directory)


def _note(settings: RunSettings) -> Path | None:
    """Return where ranks tell each other of the run, where nothing else connects them."""
    if not _is_shared(settings) or world_size() == 1 or has_process_group():
        return None
    return note_path(settings.provenance_save_dir, settings.experiment_name)


def _is_shared(settings: RunSettings) -> bool:
    return settings.collect_all_processes and settings.use_run_id is None


def _shared_directory(settings: RunSettings, rank: int, note: Path | None) -> Path:
    """Return the folder that rank zero reserves, on every rank that is to write into it.

    Raises:
        StorageError: Rank zero could make none, or could not be asked.
    """
    if not _is_shared(settings):
        return _directory(settings)
    return agree(lambda: _directory(settings), rank=rank, note=note)


def _directory(settings: RunSettings) -> Path:
    """Reserve the folder of a new run, or find that of the one that was asked for."""
    project, experiment = settings.provenance_save_dir, settings.experiment_name
    if settings.use_run_id is None:
        return reserve(project, run_folder(experiment, ""))[0]
    folder = project / run_folder(experiment, settings.use_run_id)
    attach(folder)
    return folder


def _about(layout: RunLayout, settings: RunSettings, rank: int) -> dict[str, Plain]:
    return {
        "library": __title__,
        "library_version": __version__,
        "provenance_path": _shown(layout.directory.parent),
        "experiment_dir": _shown(layout.directory),
        "artifact_uri": layout.relative(layout.artifacts),
        "global_rank": rank,
        "collect_all_processes": settings.collect_all_processes,
        **electricity_facts(settings.carbon),
    }


def _shown(path: Path) -> str:
    """Return a path as a document may hold it: relative to the folder that the run began in."""
    try:
        here = Path.cwd()
    except OSError:  # that folder was removed
        return str(path)
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else str(path)


def _kept(settings: RunSettings) -> dict[str, Any]:
    return {
        "metrics_file_type": settings.metrics_file_type.value,
        "csv_separator": settings.csv_separator,
        "use_compressor": settings.use_compressor,
    }
