"""The runs of a logger that itwinai uses: one between the making and the end of a context."""

from __future__ import annotations

import sys
import time
import uuid
from abc import ABC
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from typing_extensions import override

from provml_lightning.domain.records import Parameter
from provml_lightning.loggers.items import Items
from provml_lightning.loggers.itwinai_base import Base, check_initialized, check_not_initialized
from provml_lightning.loggers.provml import ProvMLLogger
from provml_lightning.loggers.workers import shared_folder, sit_out, workers
from provml_lightning.runtime.active import BUSY_RUNS, AnyRun, enter
from provml_lightning.runtime.exporting import draw
from provml_lightning.runtime.faults import warn
from provml_lightning.runtime.outcome import outcome_of
from provml_lightning.runtime.run import Run
from provml_lightning.runtime.silent import SilentRun
from provml_lightning.storage.layout import RunLayout

__all__ = ["ContextLogger"]

# What itwinai's trainers say of a context when they create it.
_TOLD = ("run_name", "parent_run_id", "run_id")

# Where every exception keeps attributes, whatever its class makes of reading and setting them.
_ATTRIBUTES = vars(BaseException)["__dict__"]


class ContextLogger(ProvMLLogger, Base, ABC):
    """A :class:`ProvMLLogger` whose runs itwinai's contexts begin and end too.

    Attributes:
        create_graph: Write the graph as DOT when a run ends.
        create_svg: Draw it as SVG too.
    """

    create_graph: bool
    create_svg: bool
    _ranks: Collection[int] = (0,)
    _silent: SilentRun | None = None
    _placed: bool = False
    _items: Items

    @property
    def experiment_id(self) -> str:
        """The experiment's name."""
        return self.name

    @property
    def run_id(self) -> int | str:
        """The run's version."""
        return self.version

    @override
    @check_not_initialized
    def create_logger_context(self, rank: int = 0, **kwargs: Any) -> AnyRun | None:
        """Open a run, or go on with the one that is open or that a ``run_id`` asks to continue.

        All ranks call it, those that do not log too. On them nothing is recorded, by this logger
        or by calls of ``prov4ml``.

        Args:
            rank: Global rank of this process.
            **kwargs: ``run_name``, ``parent_run_id`` and ``run_id`` are kept as parameters. With
                a ``run_id`` a context that was destroyed is continued, not followed by a new run.

        Returns:
            The run; None where the context was there already.

        Raises:
            StorageError: The run's folder or files cannot be made.
        """
        self.worker_rank = rank
        self._ranks = workers(self.log_on_workers, rank)
        if not self.should_log():
            sit_out(self._ranks)
            self._silent = SilentRun(rank)
            enter(self._silent, encloses=False)
            self.is_initialized = True
            return self._silent
        if self._run is not None and not self._run.is_open and kwargs.get("run_id") is None:
            self._renew()
        run = self._opened()
        self._mark(sys.exc_info()[1])
        self.is_initialized = True
        BUSY_RUNS.add(run)
        for key in _TOLD:
            if told := kwargs.get(key):
                now = time.time_ns()
                run.record(Parameter(time=now, key=key, value=str(told), source="itwinai"))
        return run

    @override
    @check_initialized
    def destroy_logger_context(self) -> None:
        """End the run and write everything that people read.

        The next context is a new run; a Trainer that uses the logger before goes on in this one,
        and the context is then there again.

        An exception that is on its way is how the run ended. Faults are warnings: the training
        is over, and what it returns is worth more.
        """
        self.is_initialized = False
        run: AnyRun | None = self._silent or self._run
        self._silent = None
        if run is None:
            return
        BUSY_RUNS.discard(run)
        error = sys.exc_info()[1]
        if self._was_there(error):
            error = None
        try:
            run.close(outcome_of(error), error)
        except Exception as failure:  # noqa: BLE001  the user's own error is worth more
            warn(str(failure))

    @override
    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs to go on in the same run."""
        return {**super().__getstate__(), "_silent": None}

    @override
    def _open(self) -> Run:
        note: Path | None = None
        if len(self._ranks) > 1 and not self._placed:
            layout, note = self._share()
        else:
            layout = self._place()
        self._placed = True
        run = self._open_in(layout, self.worker_rank, self._ranks)
        if note is not None:
            run.finishers.append(partial(note.unlink, missing_ok=True))
        if self.create_graph or self.create_svg:
            run.finishers.append(partial(draw, layout, svg=self.create_svg))
        self.is_initialized = True
        return run

    def _share(self) -> tuple[RunLayout, Path | None]:
        """Return the place that the ranks which log have in common, and the note that tells it."""
        self._settings = replace(self._settings, collect_all_processes=True)
        folder, note = shared_folder(
            lambda: self._place().directory, self._ranks, self.worker_rank, Path(self.root_dir)
        )
        if self._counted:
            self._version = int(folder.name.removeprefix("version_"))
        return RunLayout(folder), note

    def _mark(self, error: BaseException | None) -> None:
        """Let an exception that is handled around a context be known again at its end.

        Built-in exceptions take no weak references; a strong one would keep the frames of a failed
        attempt, and its tensors with them; an ``id`` is another exception's once this one is gone.
        """
        if error is not None:
            _ATTRIBUTES.__get__(error)[f"_handled_before_{self._uuid}"] = True

    def _was_there(self, error: BaseException | None) -> bool:
        """Tell whether an exception was handled before the context was."""
        return error is not None and f"_handled_before_{self._uuid}" in _ATTRIBUTES.__get__(error)

    def _renew(self) -> None:
        """Let the next run be another one."""
        self._uuid = str(uuid.uuid4())
        self._run, self._placed, self._items = None, False, Items()
        if self._counted:
            self._version = None
