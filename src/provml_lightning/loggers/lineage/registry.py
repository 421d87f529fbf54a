"""The checkpoints that a run was told of: read, used again, overwritten, gone."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from provml_lightning.domain.context import Context
from provml_lightning.domain.records import FileDeleted, FileUsed, ModelVersion
from provml_lightning.loggers.lineage.digests import Digests
from provml_lightning.loggers.lineage.earlier import is_still, told_before
from provml_lightning.loggers.lineage.kept import Kept
from provml_lightning.loggers.lineage.origins import has_version, origin_of
from provml_lightning.loggers.lineage.places import (
    UNSEEN,
    Mark,
    Place,
    Places,
    first_look,
    gone_at,
    mark_of,
)
from provml_lightning.loggers.lineage.saving import SOURCE, Saving
from provml_lightning.loggers.lineage.weights import State, Weights
from provml_lightning.runtime.run import Run

if TYPE_CHECKING:
    from provml_lightning.domain.values import Plain

__all__ = ["Registry"]


class Registry:
    """Knows which lie there; files are looked at and read, never copied.

    Args:
        lent: The weights that another process had of the module that is trained in this one.

    Attributes:
        weights: Which version each module's weights come from.
    """

    def __init__(self, lent: State | None = None) -> None:
        self.weights = Weights(lent)
        self._latest = 0
        self._is_taken_up = False
        self._replaced: set[str] = set()
        self._places = Places()
        self._kept: dict[str, Kept] = {}
        self._digests = Digests()

    def expect_others(self) -> None:
        """Take that other processes go on with the checkpoints from here."""
        self._is_taken_up = False

    def take_up(self, run: Run) -> None:
        """Go on with the checkpoints that earlier processes of the run told of, once."""
        if self._is_taken_up:
            return
        self._is_taken_up = True
        for shown, told in told_before(run.layout, SOURCE).items():
            path = str(run.directory / shown) if told.stored else shown
            place = self._places.of(run, path)
            mark = UNSEEN if place.is_remote else mark_of(place)
            if mark is None and not place.is_inside:
                continue  # its disk may not be here today: nobody saw that it was deleted
            if mark in {None, UNSEEN} or is_still(told, place, mark):
                self._keep(path, place, mark or UNSEEN, told)
            else:
                self._replaced.add(shown)
        inside = [shown for shown, known in self._kept.items() if known.place.is_inside]
        self._tell_deleted(run, inside, None)

    def load(self, run: Run, saving: Saving) -> None:
        """Take that a module was given the weights of a checkpoint, before a stage begins."""
        place = self._places.of(run, saving.path)
        known = self._known_at(place, mark_of(place))
        self.weights.load(saving.module, None if known is None else known.told.time)

    def use(self, run: Run, saving: Saving) -> None:
        """Tell that a context began from a checkpoint: of this run, of another, or of nobody's.

        Raises:
            ProvMLError: The run that it lies in cannot be read.
        """
        place, now = self._places.of(run, saving.path), self._moment(saving.time)
        mark = mark_of(place)
        known = self._known_at(place, mark)
        is_elsewhere = self._kept.get(place.shown) is None and place.shown not in self._replaced
        if known is not None or (is_elsewhere and has_version(run.layout, place.shown)):
            self._take(saving, known)
            told = FileUsed(time=now, path=place.shown, context=saving.context, source=SOURCE)
            run.record(told)
            if known is not None:
                known.last = now
            return
        if mark is None:
            return
        version = replace(saving.version(place, first_look(place, mark), now), is_input=True)
        self._tell(run, saving.path, place, mark, version)
        self.weights.load(saving.module, now)
        elsewhere = not (place.is_inside or place.is_remote)
        origin = origin_of(Path(place.path), run.directory) if elsewhere else None
        if origin is not None:
            run.record(origin.continued(now, place.shown))

    def _known_at(self, place: Place, mark: Mark | None) -> Kept | None:
        """Return the checkpoint that was told of a place, if that is what lies there."""
        known = self._kept.get(place.shown)
        is_it = known is not None and (mark == known.mark or UNSEEN in {mark, known.mark})
        return known if is_it else None

    def _take(self, saving: Saving, known: Kept | None) -> None:
        """Take it as loaded; what a training goes on from is the newest, whoever told of it."""
        if known is None and saving.context == Context.TRAINING.value:
            self.weights.lend(saving.module)
        else:
            self.weights.load(saving.module, None if known is None else known.told.time)

    def _look_again(self, run: Run, *, but: Collection[str]) -> None:
        """Tell what can be seen by now of files that nobody could look at, but for some paths."""
        unseen = [one for one in self._kept.values() if one.file is None and one.path not in but]
        for known in unseen:
            mark = mark_of(known.place)
            file = mark and first_look(known.place, mark)
            if mark is not None and file is not None:
                self._tell(run, known.path, known.place, mark, known.seen(file))

    def _tell(self, run: Run, path: str, place: Place, mark: Mark, told: ModelVersion) -> None:
        before = self._kept.get(place.shown)
        if before is not None and before.told.time != told.time:
            self._mark(run, before, {})  # it is overwritten: no longer the best or the last
        run.record(told)
        self._keep(path, place, mark, told)

    def _keep(self, path: str, place: Place, mark: Mark, told: ModelVersion) -> None:
        self._kept.pop(place.shown, None)
        self._kept[place.shown] = known = Kept(path, place, mark, told, told.time)
        if known.lacks_digest:
            self._digests.want(known)

    def _tell_deleted(self, run: Run, candidates: Collection[str], context: str | None) -> None:
        for shown in candidates:
            if mark_of(self._kept[shown].place) is None:
                self._tell_gone(run, shown, context)

    def _tell_gone(self, run: Run, shown: str, context: str | None) -> None:
        known = self._kept.pop(shown)
        self._mark(run, known, {})
        gone = gone_at(known.place, known.last, self._moment(time.time_ns()))
        run.record(FileDeleted(time=gone, path=shown, context=context, source=SOURCE))

    def _mark(self, run: Run, known: Kept, marks: Mapping[str, Plain]) -> None:
        if (marked := known.marked(marks)) is not None:
            known.told = marked
            run.record(marked)

    def _moment(self, wanted: int) -> int:
        """Return a time that no version has yet, since a version is known by its time."""
        self._latest = max(self._latest + 1, wanted)
        return self._latest
