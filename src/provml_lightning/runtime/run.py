"""A run: opened, told facts and values, written out any number of times, closed."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import override

from provml_lightning.domain.records import Ended, Opened, Record, Resumed, Status
from provml_lightning.errors import ProvMLError, RunClosedError, StorageError
from provml_lightning.runtime.beginning import begin
from provml_lightning.runtime.block import Block
from provml_lightning.runtime.contributors import Contributors
from provml_lightning.runtime.ending import admit_losses, await_ranks, write_end
from provml_lightning.runtime.exporting import try_all
from provml_lightning.runtime.faults import Faults
from provml_lightning.runtime.outcome import ended
from provml_lightning.runtime.ranks import global_rank
from provml_lightning.runtime.recovery import needs_recovery
from provml_lightning.runtime.snapshot import compile_run
from provml_lightning.runtime.values import Values

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from provml_lightning.storage.layout import RunLayout
    from provml_lightning.storage.recorder import Recorder

__all__ = ["Run"]


class Run(Block, Values):
    """One run in one process; every method may be called from any thread.

    Made by :func:`provml_lightning.runtime.opening.open_run`. As a context manager it closes with
    the status that the block's exception, or none, says.

    Attributes:
        layout: Where it lies.
        opened: What is true of it from the start.
        rank: Global rank of this process [1].
        contributors: Who is asked for more before everything is written.
        finishers: What is done once the run is closed and written.
    """

    records = True

    def __init__(
        self,
        layout: RunLayout,
        opened: Opened,
        *,
        rank: int,
        ranks: Collection[int] = (0,),
        waiting: int,
        strict: bool,
    ) -> None:
        """Begin to write; the run's folder exists.

        Args:
            layout: Where it lies.
            opened: What is true of it from the start.
            rank: Global rank of this process [1].
            ranks: Those of all processes that are to write into this run; the least compiles.
            waiting: Values that may wait in memory where files cannot be mapped [1].
            strict: Storage faults raise instead of warning.

        Raises:
            StorageError: This process's files cannot be made there.
        """
        super().__init__()
        self.layout = layout
        self.opened = opened
        self.rank = rank
        self.contributors = Contributors()
        self.finishers: list[Callable[[], object]] = []
        self._ranks = ranks
        self._waiting = waiting
        self._strict = strict
        self._faults = self._new_faults()
        self._forked = False
        self._was_rank = global_rank()
        self._closed = False
        self._pause: Ended | None = None
        self._part: Ended | None = None
        self._recorder: Recorder | None = self._new_recorder()

    @property
    def directory(self) -> Path:
        """The folder that holds everything of this run."""
        return self.layout.directory

    @property
    def is_open(self) -> bool:
        """Tell whether the run still takes records."""
        return not self._closed

    @property
    def is_forked(self) -> bool:
        """Tell whether this process was born by fork while the run was open."""
        return self._forked

    @property
    def compiles(self) -> bool:
        """Tell whether this process writes the documents: the least rank, unless born by fork."""
        return self.rank == min(self._ranks) and not self._forked

    def record(self, record: Record) -> None:
        """Keep a fact; on return it outlives this process.

        Raises:
            RunClosedError: The run has ended.
        """
        with self._lock:
            try:
                recorder = self._writable()
            except StorageError as error:
                self.excuse("storage", error)
                return
            recorder.append(record)

    @override
    def excuse(self, topic: str, error: ProvMLError) -> None:
        """Say once, and note in the document, that something could not be recorded.

        Raises:
            ProvMLError: The run is strict.
        """
        if self._recorder is None and not self._closed:  # it rests, and would let the note be
            with suppress(ProvMLError), self._lock:
                self._writable()
        self._faults.excuse(topic, error)

    def mention(self, record: Record) -> None:
        """Keep a fact where a file is open for it; a run that rests, or has ended, lets it be.

        It takes no lock, which whoever waits for us may hold.
        """
        recorder = self._recorder
        if recorder is not None and not recorder.is_closed:
            recorder.append(record)

    def flush(self) -> None:
        """Write what waits in memory, so that a reader finds it."""
        recorder = self._recorder
        if recorder is not None:
            recorder.flush()

    def snapshot(self, status: Status | None = None, error: BaseException | None = None) -> None:
        """Write everything that people read; logging may go on afterwards.

        Args:
            status: How a part of the run ended, if one did. Then no file stays open: what is
                logged afterwards goes to new ones.
            error: The exception that ended it.

        Raises:
            StorageError: The disk did not take it; what was logged is safe in the journal folder.
        """
        self.contributors.ask()
        with self._lock:
            recorder = None if self._closed else self._recorder
        if recorder is not None:
            try:
                recorder.sync()
            except OSError as fault:
                self._faults.report(fault)
        with self._lock:
            if status is not None and self._is_news(status, error):
                self._rest(ended(status, error, final=False))
            resting = self._recorder is None
        if self.compiles:
            compile_run(self.layout, seal=resting)

    @override
    def close(self, status: Status = Status.COMPLETED, error: BaseException | None = None) -> None:
        """End the run: write everything that people read; a second call does nothing.

        An end that was told already, with nothing logged since, stands; so does the failure of
        the last part, whatever was told after it.

        Raises:
            StorageError: The disk did not take it; what was logged is safe in the journal folder,
                or the message says how much is not.
        """
        if self.is_open:
            self.contributors.ask(closing=True)
            if self.compiles and (note := await_ranks(self.layout, self.rank, self._ranks)):
                self.record(note)  # also where no file is open, since the last part ended
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self.numbers.clear()
            recorder = self._recorder
            if recorder is not None:
                failed = self._part if status is Status.COMPLETED else None
                write_end(recorder, ended(status, error, final=True, told=self._pause or failed))
        steps: list[Callable[[], object]] = []
        if self.compiles and (recorder is not None or needs_recovery(self.layout)):
            steps.append(lambda: compile_run(self.layout, seal=True))
        if recorder is not None:
            steps.append(lambda: admit_losses(self.directory.name, recorder.lost))
        try_all([*steps, *(self.finishers if self.compiles else ())])

    def become_child(self) -> None:
        """Leave the parent's files alone, in a process born by fork; it makes its own on demand."""
        Values.__init__(self)
        self._faults = self._new_faults()
        self.contributors = Contributors()
        self._forked = True
        if self._recorder is not None:
            self._recorder.abandon()
            self._recorder = None

    @override
    def _writable(self) -> Recorder:
        """Return this process's recorder, made anew after a fork; say so if the run goes on."""
        if self._closed:
            raise RunClosedError(
                f"the run {self.directory.name!r} has ended; start another with start_run(), or"
                " continue it with use_run_id="
            )
        if self._recorder is None:
            self._recorder = self._new_recorder()
        if self._pause is not None:
            self._pause = None
            self._recorder.append(Resumed(time=time.time_ns()))
        return self._recorder

    def _is_news(self, status: Status, error: BaseException | None) -> bool:
        """Tell whether an end is one; after a good one, with nothing logged since, only an error's.

        What fails before it logs anything, such as a checkpoint that cannot be loaded, has failed.
        """
        if self._pause is None:
            return True
        was_good = self._pause.status is Status.COMPLETED
        return was_good and status is not Status.COMPLETED and error is not None

    def _rest(self, end: Ended) -> None:
        """Say that a part ended, and let go of the files unless something waits for the disk."""
        self._part = None if end.status is Status.COMPLETED else end
        recorder = self._writable()
        if recorder.waiting:
            recorder.append(end)
        else:
            try:
                write_end(recorder, replace(end, final=True))
            finally:
                self._recorder = None
        # The next value is then a new name to us, and says that the run goes on.
        self.numbers.clear()
        self._pause = end

    def _new_faults(self) -> Faults:
        return Faults(self.directory.name, strict=self._strict, note=self.mention)

    def _new_recorder(self) -> Recorder:
        forked = self._forked
        if forked and (now := global_rank()) != self._was_rank:
            self.rank, forked = now, False  # it was forked to train: a process of its own
        recorder = begin(
            self.layout,
            self.rank,
            [self.opened, *self._numbering.told()],
            forked=forked,
            waiting=self._waiting,
            faults=self._faults,
        )
        self._points = recorder.points
        return recorder
