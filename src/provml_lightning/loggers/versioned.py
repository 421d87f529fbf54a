"""A logger of Lightning's whose run lies where ModelCheckpoint looks for it."""

from __future__ import annotations

import os
import sys
import threading
import uuid
from abc import ABC
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import Logger
from typing_extensions import override

from provml_lightning.capture.foreign import attribute
from provml_lightning.domain.settings import RunSettings
from provml_lightning.loggers.recording import lightning_rank
from provml_lightning.loggers.trainers import trainer_of_launch
from provml_lightning.loggers.versions import promise_version, require_inside, version_of
from provml_lightning.loggers.workers import shared_folder
from provml_lightning.runtime.active import enclosing, enter
from provml_lightning.runtime.opening import check, claim, open_at
from provml_lightning.runtime.ranks import world_size
from provml_lightning.runtime.run import Run
from provml_lightning.storage.layout import RunLayout

__all__ = ["VersionedLogger"]

# Held while a run opens; one for all loggers, since one that holds a lock cannot be pickled.
_opening = threading.RLock()


class VersionedLogger(Logger, ABC):
    """Has a name and a version, and a run at ``save_dir/name/version_N`` that opens on first use.

    Args:
        name: The experiment; "" puts the versions into ``save_dir`` itself.
        version: A number, or a text that names the folder as it is. None: the highest number plus
            one. A version that exists is continued.
        settings: What the run is asked for.

    Raises:
        ConfigurationError: A part of the path leads out of the project's folder, or a setting
            cannot work.
        UnsupportedFormatError: The compressor does not fit the form of the metrics files.
    """

    def __init__(self, name: str, version: int | str | None, settings: RunSettings) -> None:
        super().__init__()
        self._name = name
        self._version = version
        self._settings = settings
        check(settings)
        require_inside("name", name)
        require_inside("version", "" if version is None else str(version))
        self._counted = version is None
        self._uuid = str(uuid.uuid4())
        self._made_in: int | None = os.getpid()  # None: it is one with those in other processes
        self._is_shared = False
        self._run: Run | None = None

    @property
    @override
    def name(self) -> str:
        """The experiment; part of the path of checkpoints."""
        return self._name

    @property
    @override
    def version(self) -> int | str:
        """The version; before the run opens, the one that it will most likely get."""
        if self._run is None and self._made_in not in {None, os.getpid()}:
            self._begin_apart()
        if self._version is None:
            self._version = promise_version(Path(self.root_dir))
        elif self._is_shared and self._counted and self._run is None:
            self._version = version_of(Path(self.root_dir), self._uuid, int(self._version))
        return self._version

    @property
    @override
    def save_dir(self) -> str:
        """The project's folder, absolute."""
        return str(self._settings.provenance_save_dir)

    @property
    @override
    def root_dir(self) -> str:
        """The folder of all versions of the experiment."""
        return str(self._settings.provenance_save_dir / self._name)

    @property
    @override
    def log_dir(self) -> str:
        """The folder of this version: the run's."""
        folder = self.version if isinstance(self.version, str) else f"version_{self.version}"
        return str(Path(self.root_dir, folder))

    @property
    def records_here(self) -> bool:
        """Whether this process records: rank zero, and every other one that was asked for."""
        return self._settings.collect_all_processes or lightning_rank() == 0

    @override
    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs: the version is settled, nothing open goes along."""
        self._version, self._is_shared = self.version, True
        if (trainer := trainer_of_launch(sys._getframe(1))) is not None:  # noqa: SLF001
            self._stay_with(trainer)
        return {**self.__dict__, "_run": None, "_made_in": None}

    def share(self, trainer: Any) -> None:
        """Have one run with a process that is about to be forked, whichever opens it."""
        self._version, self._is_shared, self._made_in = self.version, True, None
        self._stay_with(trainer)

    def _stay_with(self, trainer: Any) -> None:
        """Prepare for a Trainer that has other processes train for it."""

    def _begin_apart(self) -> None:
        """Have a run of its own, in a process that the user forked before there was any."""
        self._uuid, self._made_in = str(uuid.uuid4()), os.getpid()
        self._version = None if self._counted else self._version

    def _opened(self) -> Run:
        """Return the run, opened where it is not; one that ``end_run`` closed goes on."""
        run = self._run
        if run is not None and run.is_open:
            return run
        with _opening:
            if self._run is None or not self._run.is_open:
                self._run = self._open()
                enter(self._run, encloses=False)
            return self._run

    def _open(self) -> Run:
        if not self._settings.collect_all_processes:
            return self._open_in(self._place())
        rank, ranks, project = lightning_rank(), range(world_size()), Path(self.save_dir)
        folder, _ = shared_folder(lambda: self._place().directory, ranks, rank, project)
        if self._counted:
            self._version = int(folder.name.removeprefix("version_"))
        return self._open_in(RunLayout(folder), rank, ranks)

    def _place(self) -> RunLayout:
        """Return where the run lies, made or joined; the version is settled then."""
        root, wanted = Path(self.root_dir), Path(self.log_dir)
        may_move = self._counted and self._run is None
        layout = claim(wanted, self._uuid, otherwise=root / "version_" if may_move else None)
        if layout.directory != wanted:
            self._version = int(layout.directory.name.removeprefix("version_"))
        return layout

    def _open_in(self, layout: RunLayout, rank: int = 0, ranks: Collection[int] = (0,)) -> Run:
        return open_at(
            layout,
            self._settings,
            run_id=str(self.version),
            run_uuid=self._uuid,
            rank=rank,
            ranks=ranks,
            parent=enclosing(),
        )


def _share_before_fork() -> None:
    """Do for processes that Lightning forks what ``__getstate__`` does for those that it spawns.

    Whoever else forks has trainings of their own in mind.
    """
    trainer = trainer_of_launch(sys._getframe(1))  # noqa: SLF001
    for logger in attribute(trainer, "loggers") or ():
        if isinstance(logger, VersionedLogger):
            with suppress(OSError):  # it cannot be listed: opening the run will say so
                logger.share(trainer)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_share_before_fork)
