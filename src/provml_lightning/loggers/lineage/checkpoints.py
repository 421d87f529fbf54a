"""Checkpoints as versions of the model: made, read, used again, gone."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provml_lightning.capture.foreign import attribute
from provml_lightning.errors import RecordError
from provml_lightning.loggers.lineage.expected import Expected, Queue, is_blind
from provml_lightning.loggers.lineage.marks import Marks
from provml_lightning.loggers.lineage.places import (
    UNSEEN,
    Mark,
    Place,
    first_look,
    is_remote,
    mark_of,
)
from provml_lightning.loggers.lineage.registry import Registry
from provml_lightning.loggers.lineage.saving import Saving, paths_of
from provml_lightning.loggers.lineage.weights import State
from provml_lightning.runtime.run import Run

if TYPE_CHECKING:
    from provml_lightning.domain.files import StoredFile
    from provml_lightning.domain.values import Plain

__all__ = ["Checkpoints"]

_MOST_LOOKED_FOR = 64  # files whose deletion is looked for while a training runs


class Checkpoints(Registry):
    """Tells a run of its checkpoints as they are made.

    Args:
        lent: The weights that another process had of the module that is trained in this one.

    Attributes:
        expected: What was announced and not seen yet.
    """

    def __init__(self, lent: State | None = None) -> None:
        super().__init__(lent)
        self._since = time.time_ns()
        self._has_made = False
        self._marks = Marks()
        self.expected = Queue()
        self._stumps: dict[str, Mark | None] = {}

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
        self.expected.add(Expected(saving, self.weights.save(saving.module), before))

    def _drop(self, run: Run, path: str) -> None:
        """Give up what was expected at a path where another one comes."""
        for one in self.expected.at(path):
            self.expected.drop(one)
            if one.is_unseen:
                self._admit(run, self._places.of(run, path))

    def _admit(self, run: Run, place: Place) -> None:
        told = f"{place.shown}: nobody could see whether it was written"
        run.excuse("checkpoint", RecordError(told))

    def ended(self, run: Run, path: str, context: str | None, *, failed: bool) -> None:
        """Take how a save has ended: what a failed one leaves is no version, and spoils another."""
        for one in self.expected.at(path):
            one.end(failed=failed)
        self._note_stump(run, path, context, failed=failed)

    def _note_stump(self, run: Run, path: str, context: str | None, *, failed: bool) -> None:
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
                ModelCheckpoint of the user's writes by itself.
        """
        if attribute(callback, "save_weights_only"):
            unheard = [path for path in scores if not self.expected.at(path)]
            for path in [path for path in unheard if self._is_new(run, path)]:
                weights = self.weights.save(now.module)
                self.expected.add(Expected(replace(now, path=path), weights))
        for one in self.expected:
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
        self.expected.wait()
        self._tell_written(run, at_last=True)
        for one in self.expected.keep_unended():  # others have gone, such as the file of a search
            shown = self._places.of(run, one.saving.path).shown
            told = f"{shown}: it was still being written when the documents were"
            run.excuse("checkpoint", RecordError(told))
        self._look_again(run, but={one.saving.path for one in self.expected})
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

    def _is_new(self, run: Run, path: str) -> bool:
        place = self._places.of(run, path)
        mark, known = mark_of(place), self._kept.get(place.shown)
        if mark is None or mark == self._stumps.get(path) or 0 < mark.changed < self._since:
            return False
        if known is None or UNSEEN in {mark, known.mark}:
            return known is None  # one of an earlier process is not new for being seen now
        return known.mark != mark

    def _tell_written(self, run: Run, *, at_last: bool = False) -> None:
        """Tell of the files that were expected and are there; the others may come."""
        for one in self.expected:
            saving, is_last = one.saving, self.expected.is_last(one)
            if one.has_ended():
                self._note_stump(run, saving.path, saving.context, failed=one.has_failed)
                if one.has_failed:
                    self.expected.drop(one)
                    continue
            if self._try_to_tell(run, one, is_last=is_last, at_last=at_last):
                for told in self.expected.at(saving.path) if is_last else [one]:
                    self.expected.drop(told)
            elif one.is_elsewhere and not is_remote(saving.path):
                self.expected.drop(one)

    def _try_to_tell(self, run: Run, one: Expected, *, is_last: bool, at_last: bool) -> bool:
        """Tell of a file if it is there, or if nothing more is to be expected of it.

        Of several that are queued for one path the last will lie there; those before were there
        unseen. What a remote store does not say is waited for; at last it is told without.
        """
        place = self._places.of(run, one.saving.path)
        if one.is_written and not is_last:
            self._tell_saved(run, one, place, UNSEEN, None)
            return True
        if one.has_failed or not is_last or one.ending is not None:
            return False
        if not (at_last or one.may_look(place)):
            return False
        mark = mark_of(place)
        known = self._kept.get(place.shown)
        one.is_unseen = mark == UNSEEN
        is_old = not is_blind(mark) and mark in {one.before, known and known.mark}
        file = None if mark is None or is_old else first_look(place, mark)
        if mark is None or (file is None and not (at_last and mark == UNSEEN)):
            return False
        if is_blind(mark) and (one.may_have_failed or file is None):
            self._admit(run, place)
        if not (is_blind(mark) and one.may_have_failed):
            self._tell_saved(run, one, place, mark, file)
        return True

    def _tell_saved(
        self, run: Run, one: Expected, place: Place, mark: Mark, file: StoredFile | None
    ) -> None:
        self._has_made = True
        saving = one.saving
        written = max(saving.time, min(mark.changed, time.time_ns()))
        version = saving.version(place, file, self._moment(written))
        derived = one.weights.sources()
        is_trained = derived is None or one.weights.is_trained
        told = replace(version, derived=derived, is_trained=is_trained)
        self._tell(run, saving.path, place, mark, told)
        one.weights.tell(told.time)
