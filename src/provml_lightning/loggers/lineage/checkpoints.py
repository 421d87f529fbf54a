"""Checkpoints as versions of the model: made, read, used again, gone."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from provml_lightning.capture.foreign import attribute
from provml_lightning.domain.records import Continued, FileDeleted, FileUsed, ModelVersion
from provml_lightning.domain.redaction import redact
from provml_lightning.loggers.lineage.origins import has_version, origin_of
from provml_lightning.loggers.lineage.places import (
    Mark,
    Place,
    first_look,
    gone_at,
    is_remote,
    mark_of,
    place_of,
)
from provml_lightning.loggers.lineage.reading import Reader
from provml_lightning.loggers.lineage.saving import Saving, best_and_last, paths_of
from provml_lightning.runtime.run import Run

if TYPE_CHECKING:
    from provml_lightning.domain.files import StoredFile
    from provml_lightning.domain.values import Plain

__all__ = ["Checkpoints"]

_SOURCE = "lightning"
_MOST_LOOKED_FOR = 64  # files whose deletion is looked for while a training runs
_LONGEST_WAIT = 10.0  # for digests, when documents are written [s]


class _Expected(NamedTuple):
    """A checkpoint that is about to be written, and what lies at its path until then."""

    saving: Saving
    before: Mark | None = None


@dataclass(slots=True)
class _Kept:
    """A checkpoint that lies there, as it was told last, and when it was last made or used [ns].

    ``path`` is as the Trainer has it.
    """

    path: str
    place: Place
    mark: Mark
    told: ModelVersion
    last: int


class Checkpoints:
    """Tells a run of its checkpoints; files are looked at and read, never copied."""

    def __init__(self) -> None:
        self._since = time.time_ns()
        self._latest = 0
        self._expected: list[_Expected] = []
        self._kept: dict[str, _Kept] = {}
        self._unread: dict[tuple[str, Mark], ModelVersion] = {}
        self._reader = Reader()

    def expect(self, saving: Saving, *, queued: bool = False) -> None:
        """Take a checkpoint that is about to be written.

        Args:
            saving: The checkpoint.
            queued: Those before it may still be on their way; else one for the same path that has
                not come has failed, and would be taken for this one.
        """
        if not queued:
            others = [one for one in self._expected if one.saving.path != saving.path]
            self._expected = others
        before = None if is_remote(saving.path) else mark_of(Path(saving.path))
        self._expected.append(_Expected(saving, before))

    def saved(
        self, run: Run, callback: Any, scores: Mapping[str, Mapping[str, Plain]], now: Saving
    ) -> None:
        """Tell of what a ModelCheckpoint has just written.

        Args:
            run: The run.
            callback: The ModelCheckpoint.
            scores: What it monitors, for each path that it lists.
            now: What holds for a file that was not announced: Lightning announces none that has
                weights alone.
        """
        if attribute(callback, "save_weights_only"):
            announced = {one.saving.path for one in self._expected}
            new = [path for path in scores if path not in announced and self._is_new(run, path)]
            self._expected += [_Expected(replace(now, path=path)) for path in new]
        self._expected = [
            one._replace(saving=_scored(one.saving, scores.get(one.saving.path, {})))
            for one in self._expected
        ]
        self.settle(run, [callback], now.context)

    def settle(self, run: Run, callbacks: Collection[Any], context: str | None) -> None:
        """Tell of files that were written, read or deleted since the last call."""
        self._tell_written(run)
        self._tell_read(run)
        listed = {path for one in callbacks for path in paths_of(one)}
        others = [shown for shown, known in self._kept.items() if known.path not in listed]
        self._tell_deleted(run, others[-_MOST_LOOKED_FOR:], context)

    def finish(self, run: Run, callbacks: Collection[Any], context: str | None) -> None:
        """Tell of everything that can be known now; wait some seconds for what is being read."""
        # All that was queued is written: of several for one path the last lies there.
        self._expected = list({one.saving.path: one for one in self._expected}.values())
        self._tell_written(run)
        self._expected.clear()  # such as the file of a search, which is gone
        self._tell_read(run, _LONGEST_WAIT)
        if self._reader.is_idle:
            self._unread.clear()  # they were deleted before
        self._tell_deleted(run, list(self._kept), context)
        self._tell_marks(run, callbacks)

    def use(self, run: Run, saving: Saving) -> None:
        """Tell that a context began from a checkpoint: of this run, of another, or of nobody's.

        Raises:
            ProvMLError: The run that it lies in cannot be read.
        """
        place, now = place_of(run, saving.path), self._moment(saving.time)
        known = self._kept.get(place.shown)
        if known is not None:
            known.last = now
        if known is not None or has_version(run.layout, place.shown):
            told = FileUsed(time=now, path=place.shown, context=saving.context, source=_SOURCE)
            run.record(told)
            return
        if is_remote(saving.path) or (mark := mark_of(place.path)) is None:
            return
        version = replace(_version(saving, place, mark, now), is_input=True)
        self._tell(run, saving.path, place, mark, version)
        origin = None if place.is_inside else origin_of(place.path, run.directory)
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
        place = place_of(run, path)
        mark, known = mark_of(place.path), self._kept.get(place.shown)
        if mark is None or mark.changed < self._since:
            return False
        return known is None or known.mark != mark

    def _tell_written(self, run: Run) -> None:
        """Tell of the files that were expected and are there; the others may come.

        Of several that are queued for one path nobody knows which one lies there.
        """
        expected, self._expected = self._expected, []
        queued = Counter(one.saving.path for one in expected)
        for one in expected:
            saving = one.saving
            if is_remote(saving.path):
                told = _version(saving, None, None, self._moment(saving.time))
                run.record(told)
                continue
            place = place_of(run, saving.path)
            mark, known = mark_of(place.path), self._kept.get(place.shown)
            if mark in {None, one.before, known and known.mark} or queued[saving.path] > 1:
                self._expected.append(one)
                continue
            written = max(saving.time, min(mark.changed, time.time_ns()))
            version = _version(saving, place, mark, self._moment(written))
            self._tell(run, saving.path, place, mark, version)

    def _tell(self, run: Run, path: str, place: Place, mark: Mark, told: ModelVersion) -> None:
        run.record(told)
        self._kept.pop(place.shown, None)
        self._kept[place.shown] = _Kept(path, place, mark, told, told.time)
        self._unread[place.shown, mark] = told
        self._reader.read(place, mark)

    def _tell_read(self, run: Run, wait: float = 0.0) -> None:
        """Tell the digests of what was read."""
        for file, mark in self._reader.finished(wait):
            told = self._unread.pop((file.path, mark), None)
            known = self._kept.get(file.path)
            if known is not None and known.mark == mark:
                told = known.told
            if told is None:
                continue
            whole = _with_digest(told, file)
            run.record(whole)
            if known is not None and known.mark == mark:
                known.told = whole

    def _tell_deleted(self, run: Run, candidates: Collection[str], context: str | None) -> None:
        for shown in candidates:
            known = self._kept[shown]
            if mark_of(known.place.path) is not None:
                continue
            del self._kept[shown]
            self._mark(run, known, {})
            gone = gone_at(known.place.path, known.last, self._moment(time.time_ns()))
            run.record(FileDeleted(time=gone, path=shown, context=context, source=_SOURCE))

    def _tell_marks(self, run: Run, callbacks: Collection[Any]) -> None:
        """Say which checkpoint is the best and which the last, as ModelCheckpoint has them.

        Where it keeps none as the last, that is the one that was made last.
        """
        pairs = [best_and_last(callback) for callback in callbacks]
        best = {place_of(run, path).shown for path, _ in pairs if path}
        last = {place_of(run, path).shown for _, path in pairs if path}
        made = [shown for shown, known in self._kept.items() if not known.told.is_input]
        last = last or set(made[-1:])
        for shown in made:
            marks = {"is_best": shown in best, "is_last": shown in last}
            self._mark(
                run, self._kept[shown], {name: True for name, is_so in marks.items() if is_so}
            )

    def _mark(self, run: Run, known: _Kept, marks: Mapping[str, Plain]) -> None:
        others = {
            name: value
            for name, value in known.told.attributes.items()
            if name not in {"is_best", "is_last"}
        }
        if known.told.attributes != (marked := {**others, **marks}):
            known.told = replace(known.told, attributes=marked)
            run.record(known.told)

    def _moment(self, wanted: int) -> int:
        """Return a time that no version has yet, since a version is known by its time."""
        self._latest = max(self._latest + 1, wanted)
        return self._latest


def _scored(saving: Saving, scores: Mapping[str, Plain]) -> Saving:
    return replace(saving, attributes={**saving.attributes, **scores})


def _with_digest(told: ModelVersion, file: StoredFile) -> ModelVersion:
    return replace(told, stored=file) if told.stored else replace(told, original=file)


def _version(saving: Saving, place: Place | None, mark: Mark | None, now: int) -> ModelVersion:
    file = first_look(place, mark) if place is not None and mark is not None else None
    inside = place is not None and place.is_inside
    elsewhere = {} if place is not None else {"location": redact(saving.path)}
    return ModelVersion(
        time=now,
        name=saving.model,
        stored=file if inside else None,
        original=None if inside else file,
        context=saving.context,
        source=_SOURCE,
        step=saving.step,
        attributes={**saving.attributes, **elsewhere},
    )
