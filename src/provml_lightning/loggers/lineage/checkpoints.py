"""Checkpoints as versions of the model: made, read, used again, gone."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provml_lightning.capture.foreign import attribute
from provml_lightning.domain.records import Continued, FileDeleted, FileUsed, ModelVersion
from provml_lightning.errors import RecordError
from provml_lightning.loggers.lineage.digests import Digests
from provml_lightning.loggers.lineage.earlier import is_still, told_before
from provml_lightning.loggers.lineage.expected import Expected, is_blind
from provml_lightning.loggers.lineage.kept import Kept
from provml_lightning.loggers.lineage.marks import Marks
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
from provml_lightning.loggers.lineage.saving import SOURCE, Saving, paths_of
from provml_lightning.runtime.run import Run

if TYPE_CHECKING:
    from provml_lightning.domain.values import Plain

__all__ = ["Checkpoints"]

_MOST_LOOKED_FOR = 64  # files whose deletion is looked for while a training runs


class Checkpoints:
    """Tells a run of its checkpoints; files are looked at and read, never copied."""

    def __init__(self) -> None:
        self._since = time.time_ns()
        self._latest = 0
        self._is_taken_up = self._has_made = self._is_fresh = False
        self._marks = Marks()
        self._expected: list[Expected] = []
        self._stumps: dict[str, Mark | None] = {}
        self._replaced: set[str] = set()
        self._places = Places()
        self._kept: dict[str, Kept] = {}
        self._digests = Digests()

    @property
    def is_waiting(self) -> bool:
        """Whether a checkpoint was announced that nobody has seen yet."""
        return bool(self._expected)

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

    def doubt(self) -> None:
        """Take what was announced and not seen yet as perhaps not written: an exception came."""
        for one in self._expected:
            one.may_have_failed = True

    def begin_anew(self) -> None:
        """Take the next version as the first of weights that have nothing of those before."""
        self._is_fresh = True

    def expect(self, run: Run, saving: Saving, *, queued: bool = False) -> None:
        """Take a checkpoint that is about to be written.

        Args:
            run: The run.
            saving: The checkpoint.
            queued: Those before it may still be on their way; else one for the same path that has
                not come has failed, and would be taken for this one.
        """
        if not queued:
            self._drop(run, saving.path)
        before = mark_of(self._places.of(run, saving.path))
        self._expected.append(Expected(saving, before))

    def _drop(self, run: Run, path: str) -> None:
        """Give up what was expected at a path where another one comes."""
        for one in [one for one in self._expected if one.saving.path == path]:
            self._expected.remove(one)
            if one.is_unseen:
                self._admit(run, self._places.of(run, path))

    def _admit(self, run: Run, place: Place) -> None:
        told = f"{place.shown}: nobody could see whether it was written"
        run.excuse("checkpoint", RecordError(told))

    def ended(self, run: Run, path: str, context: str | None, *, failed: bool) -> None:
        """Take how a save has ended: what a failed one leaves is no version, and spoils another."""
        for one in [one for one in self._expected if one.saving.path == path]:
            one.has_failed = failed
        self._stumps.pop(path, None)
        if failed:
            place = self._places.of(run, path)
            self._stumps[path] = mark = mark_of(place)
            known = self._kept.get(place.shown)
            if known is not None and mark not in {known.mark, UNSEEN}:
                self._tell_gone(run, place.shown, context)

    def saved(
        self, run: Run, callback: Any, scores: Mapping[str, Mapping[str, Plain]], now: Saving
    ) -> None:
        """Take what a ModelCheckpoint says of what it has just written.

        Args:
            run: The run.
            callback: The ModelCheckpoint.
            scores: What it monitors, for each path that it lists.
            now: What holds for a file of weights alone that was not heard of, such as one that a
                strategy or a ModelCheckpoint of the user's writes by itself.
        """
        if attribute(callback, "save_weights_only"):
            heard = {one.saving.path for one in self._expected}
            new = [path for path in scores if path not in heard and self._is_new(run, path)]
            self._expected += [Expected(replace(now, path=path)) for path in new]
        for one in self._expected:
            one.saving = one.saving.scored(scores.get(one.saving.path, {}))

    def settle(self, run: Run, callbacks: Collection[Any], context: str | None) -> None:
        """Tell of files that were written, read or deleted since the last call."""
        self._tell_written(run)
        self._digests.tell(run, self._kept)
        self._marks.hear(callbacks)
        listed = {path for one in callbacks for path in paths_of(one)}
        others = [shown for shown, known in self._kept.items() if known.may_be_gone(listed)]
        self._tell_deleted(run, others[-_MOST_LOOKED_FOR:], context)

    def finish(
        self, run: Run, callbacks: Collection[Any], context: str | None, *, trains: bool
    ) -> None:
        """Tell of everything that can be known now; wait some seconds for what is being read.

        ``trains`` is false where another process trained.
        """
        # All that was queued is written: of several for one path the last lies there.
        last = {one.saving.path: one for one in self._expected}
        self._expected = sorted(last.values(), key=lambda one: one.saving.time)
        self._tell_written(run, at_last=True)
        self._expected.clear()  # such as the file of a search, which is gone
        self._look_again(run)
        gone = [shown for shown, known in self._kept.items() if known.is_looked_for]
        self._tell_deleted(run, gone, context)
        self._digests.finish(run, self._kept)
        self._marks.hear(callbacks)
        if self._has_made:  # who only tests what an earlier process made, marks nothing anew
            marks = self._marks.of(
                self._kept, lambda path: self._places.of(run, path).shown, trains=trains
            )
            for shown, these in marks.items():
                self._mark(run, self._kept[shown], these)

    def _look_again(self, run: Run) -> None:
        """Tell what can be seen by now of files that nobody could look at."""
        for known in [one for one in self._kept.values() if one.file is None]:
            mark = mark_of(known.place)
            file = mark and first_look(known.place, mark)
            if mark is not None and file is not None:
                self._tell(run, known.path, known.place, mark, known.seen(file))

    def use(self, run: Run, saving: Saving) -> None:
        """Tell that a context began from a checkpoint: of this run, of another, or of nobody's.

        Raises:
            ProvMLError: The run that it lies in cannot be read.
        """
        place, now = self._places.of(run, saving.path), self._moment(saving.time)
        mark, known = mark_of(place), self._kept.get(place.shown)
        is_known = known is not None and UNSEEN in {mark, known.mark}
        is_known |= known is not None and known.mark == mark
        others = known is None and place.shown not in self._replaced
        if is_known or (others and has_version(run.layout, place.shown)):
            if known is not None:
                known.last = now
            told = FileUsed(time=now, path=place.shown, context=saving.context, source=SOURCE)
            run.record(told)
            return
        if mark is None:
            return
        version = replace(saving.version(place, first_look(place, mark), now), is_input=True)
        self._tell(run, saving.path, place, mark, version)
        elsewhere = not (place.is_inside or place.is_remote)
        origin = origin_of(Path(place.path), run.directory) if elsewhere else None
        if origin is not None:
            run.record(
                Continued(
                    time=now,
                    path=place.shown,
                    namespace=origin.namespace,
                    run=origin.run,
                    name=origin.name,
                    file=origin.file,
                )
            )

    def _is_new(self, run: Run, path: str) -> bool:
        place = self._places.of(run, path)
        mark, known = mark_of(place), self._kept.get(place.shown)
        if mark is None or mark == self._stumps.get(path) or 0 < mark.changed < self._since:
            return False
        if known is None or UNSEEN in {mark, known.mark}:
            return known is None  # one of an earlier process is not new for being seen now
        return known.mark != mark

    def _tell_written(self, run: Run, *, at_last: bool = False) -> None:
        """Tell of the files that were expected and are there; the others may come.

        Of several that are queued for one path nobody knows which one lies there. What a remote
        store does not say is waited for; at last it is told without being seen.
        """
        expected, self._expected = self._expected, []
        queued = Counter(one.saving.path for one in expected)
        for one in expected:
            saving = one.saving
            place = self._places.of(run, saving.path)
            is_queued = queued[saving.path] > 1
            if is_queued or one.has_failed or not (at_last or one.may_look(place)):
                self._expected.append(one)
                continue
            mark, known = mark_of(place), self._kept.get(place.shown)
            one.is_unseen = mark == UNSEEN
            is_old = not is_blind(mark) and mark in {one.before, known and known.mark}
            file = None if mark is None or is_old else first_look(place, mark)
            if mark is None or (file is None and not (at_last and mark == UNSEEN)):
                self._expected.append(one)
                continue
            if is_blind(mark) and (one.may_have_failed or file is None):
                self._admit(run, place)
            if is_blind(mark) and one.may_have_failed:
                continue
            self._has_made = True
            written = max(saving.time, min(mark.changed, time.time_ns()))
            version = saving.version(place, file, self._moment(written))
            fresh, self._is_fresh = self._is_fresh, False
            self._tell(run, saving.path, place, mark, replace(version, is_fresh=fresh))

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
