"""From the append-only files of a run to everything that people read, any number of times."""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.records import FileDeleted, Status, StoredFile
from provml_lightning.errors import StorageError
from provml_lightning.provenance.document import timestamp
from provml_lightning.provenance.provjson import dumps
from provml_lightning.provenance.statement import state
from provml_lightning.provenance.timeline import Interval, first_opened, intervals
from provml_lightning.storage.contents import open_ledger, write_contents
from provml_lightning.storage.exclusion import alone
from provml_lightning.storage.index import RunIndex, read_index, write_index, write_whole

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from provml_lightning.domain.reading import MetricsFile, RunContents
    from provml_lightning.domain.records import Opened
    from provml_lightning.storage.layout import RunLayout

__all__ = ["compile_run", "wait_for_ranks", "write_first_index"]

_LONGEST_WAIT = 10.0


def compile_run(layout: RunLayout, *, seal: bool) -> RunIndex:
    """Write the metrics files, the PROV-JSON and ``run.json`` of what the journals hold.

    Args:
        layout: The run.
        seal: Remove the point logs of writers that can write no more, once the metrics files were
            read back and counted and ``run.json`` says so. A crash at any moment leaves each value
            in one of the two.

    Raises:
        StorageError: The disk did not take it; the journals and logs stand as they were.
    """
    try:
        with alone(layout.journal), _collector_waiting():
            return _compile(layout, seal=seal)
    except OSError as error:
        remedy = (
            "Everything that was logged is in its journal folder: make room and call"
            f" 'prov4ml recover {layout.directory}'"
            if layout.journal.is_dir()
            else "The folder was moved or removed: call 'prov4ml recover' where it lies now"
        )
        raise StorageError(
            f"the documents of {layout.directory} could not be written: {error.strerror or error}."
            f" {remedy}"
        ) from error


@contextmanager
def _collector_waiting() -> Iterator[None]:
    """Let Python's search for cycles of garbage wait.

    A compile makes no such cycles, but a hundred thousand objects, for which the collector would
    look through everything that the process holds, several times: a tenth of the whole time.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    _WAITING.add("collector")
    try:
        yield
    finally:
        _let_collector_work()


_WAITING: set[str] = set()


def _let_collector_work() -> None:
    if _WAITING:
        _WAITING.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):
    # A child of another thread, such as a loader's worker, has nobody who would let it work again.
    os.register_at_fork(after_in_child=_let_collector_work)


def wait_for_ranks(
    layout: RunLayout, own: int, expected: Collection[int], longest: float = _LONGEST_WAIT
) -> list[int]:
    """Wait until every other rank has ended or died, at most ``longest`` [s]; return who has not.

    Who is still writing then keeps its files; what it adds is compiled by the next query or
    ``prov4ml recover``.

    Args:
        layout: The run.
        own: The rank that waits.
        expected: Ranks that are to write; one that has not begun is waited for too.
        longest: How long to wait [s].

    Raises:
        StorageError: A journal cannot be read.
    """
    if set(expected) <= {own} and {rank for rank, _ in layout.writers()} <= {own}:
        return []
    deadline = time.monotonic() + longest
    while True:
        ledger = open_ledger(layout)
        begun = {journal.writer.rank for journal in ledger.journals}
        writing = {writer.rank for writer in ledger.writing() if not writer.forked}
        missing = (set(expected) - begun | writing) - {own}
        if not missing or time.monotonic() >= deadline:
            return sorted(missing)
        time.sleep(0.05)


def _compile(layout: RunLayout, *, seal: bool) -> RunIndex:
    ledger = open_ledger(layout)
    finished = ledger.finished() if seal else []
    if seal and not ledger.is_ours():
        # Who has finished is asked before the files are read: nobody adds to those of a writer
        # that had finished by then. What this process wrote, it has closed.
        ledger = open_ledger(layout)
    contents, covers = write_contents(ledger)
    spans = intervals(contents)
    index = _index(layout, ledger.index, contents, spans.get(None))
    document = layout.directory / index.document
    content = dumps(state(contents, spans))
    write_whole(document, content)
    described = {
        "path": index.document,
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    sealed = sorted({*index.sealed, *finished})
    index = dataclasses.replace(
        index, sealed=sealed, covers=covers, files=[described, *index.files]
    )
    write_index(layout.index, index)
    for stem in sealed:
        layout.points_file(stem).unlink(missing_ok=True)
    return index


def _index(
    layout: RunLayout, old: RunIndex | None, contents: RunContents, times: Interval | None
) -> RunIndex:
    opened = first_opened(contents)
    known = old or RunIndex(
        experiment=opened.experiment if opened else layout.directory.name,
        run_id=opened.run_id if opened else "",
        uuid=opened.uuid if opened else "",
        document=f"prov_{layout.directory.name}.json",
        status=contents.status,
    )
    return dataclasses.replace(
        known,
        status=contents.status,
        started=timestamp(times.start) if times else None,
        ended=timestamp(times.end) if times and times.end is not None else None,
        ranks=sorted({writer.rank for writer in contents.writers}),
        files=list(_files(contents)),
    )


def _files(contents: RunContents) -> Iterator[Mapping[str, Any]]:
    """Return the files that the run owns; what was recorded twice stands as it was last."""
    stored: dict[str, StoredFile] = {}
    told = [record for _, record in contents.records]
    deleted = {record.path: record.time for record in told if isinstance(record, FileDeleted)}
    for record in told:
        for name in ("stored", "layers"):
            file = getattr(record, name, None)
            if file is not None and record.time > deleted.get(file.path, -1):
                stored[file.path] = file
    owned: list[MetricsFile | StoredFile] = [*contents.files, *stored.values()]
    for file in owned:
        yield {"path": file.path, "size": file.size, "sha256": file.sha256}


def write_first_index(layout: RunLayout, opened: Opened, settings: Mapping[str, Any]) -> None:
    """Write ``run.json`` when a run opens, so that it can be found before its first snapshot.

    Raises:
        StorageError: The disk did not take it.
    """
    fresh = RunIndex(
        experiment=opened.experiment,
        run_id=opened.run_id,
        uuid=opened.uuid,
        document=f"prov_{layout.directory.name}.json",
        status=Status.RUNNING,
        started=timestamp(opened.time),
        settings=settings,
    )
    try:
        with alone(layout.journal):
            known = read_index(layout.index)
            write_index(
                layout.index,
                dataclasses.replace(known, status=Status.RUNNING) if known else fresh,
            )
    except OSError as error:
        raise StorageError(
            f"{layout.index} cannot be written: {error.strerror or error}"
        ) from error
