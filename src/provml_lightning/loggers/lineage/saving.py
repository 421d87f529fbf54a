"""What a Trainer says of a checkpoint when it saves one."""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from provml_lightning.capture.callers import calls_of
from provml_lightning.capture.foreign import attribute
from provml_lightning.capture.remote_files import local_path
from provml_lightning.domain.context import Context
from provml_lightning.domain.files import StoredFile
from provml_lightning.domain.records import ModelVersion
from provml_lightning.loggers.lineage.endings import writers_of
from provml_lightning.loggers.lineage.places import Place, is_remote
from provml_lightning.loggers.stages import context_of_stage

if TYPE_CHECKING:
    from provml_lightning.domain.values import Plain

__all__ = [
    "SOURCE",
    "Saving",
    "announced",
    "best_and_last",
    "context_of_save",
    "paths_of",
    "paths_of_call",
    "scores_of",
    "writes_later",
]

SOURCE = "lightning"


@dataclass(frozen=True, slots=True)
class Saving:
    """A checkpoint that is about to be written, or was just now.

    ``path`` is as the Trainer was told it; ``time`` is UTC [ns]; ``module`` has the weights.
    """

    path: str
    time: int
    model: str
    module: weakref.ref[Any]
    context: str | None
    step: int | None
    attributes: Mapping[str, Plain]

    def scored(self, scores: Mapping[str, Plain]) -> Saving:
        """Return the same with what a ModelCheckpoint monitors."""
        return replace(self, attributes={**self.attributes, **scores})

    def version(self, place: Place, file: StoredFile | None, now: int) -> ModelVersion:
        """Return what is told of it, made at a time [ns]; ``file`` is None if nobody saw it."""
        elsewhere = {"location": place.shown} if file is None else {}
        return ModelVersion(
            time=now,
            name=self.model,
            stored=file if place.is_inside else None,
            original=None if place.is_inside else file,
            context=self.context,
            source=SOURCE,
            step=self.step,
            attributes={**self.attributes, **elsewhere},
        )


def announced(trainer: Any, path: str) -> Saving:
    """Return the checkpoint that a Trainer saves now, or reads, at a path."""
    module = trainer.lightning_module
    return Saving(
        path=path,
        time=time.time_ns(),
        model=type(module).__name__,
        module=weakref.ref(module),
        context=context_of_save(trainer),
        step=trainer.global_step,
        attributes={"epoch": trainer.current_epoch},
    )


def paths_of(callback: Any) -> list[str]:
    """Return the checkpoints that a ModelCheckpoint says there are, each once."""
    best, last = best_and_last(callback)
    listed = [*(attribute(callback, "best_k_models") or ()), best, last]
    return [str(path) for path in dict.fromkeys(listed) if path]


def best_and_last(callback: Any) -> tuple[str, str]:
    """Return the paths of the best and of the last checkpoint as a ModelCheckpoint has them."""
    names = ("best_model_path", "last_model_path")
    best, last = (str(attribute(callback, name) or "") for name in names)
    return best, last


def scores_of(callback: Any, trainer: Any) -> dict[str, dict[str, Plain]]:
    """Return what a ModelCheckpoint monitors, and its value for each checkpoint that it lists.

    It is the one in ``best_k_models``; for a checkpoint that is not there the Trainer's own.
    """
    paths, monitor = paths_of(callback), attribute(callback, "monitor")
    if monitor is None:
        return {path: {} for path in paths}
    told: dict[str, Plain] = {"monitor": str(monitor), "mode": str(attribute(callback, "mode"))}
    among_best = attribute(callback, "best_k_models") or {}
    now = trainer.callback_metrics.get(monitor)
    scores = {path: among_best.get(path, now) for path in paths}
    return {
        path: told if score is None else {**told, "score": float(score)}
        for path, score in scores.items()
    }


def context_of_save(trainer: Any) -> str | None:
    """Return the context that makes a checkpoint: all of a ``fit`` is the training.

    A ModelCheckpoint may well save when a validation ends; it is the training's model.
    """
    stage = context_of_stage(trainer)
    fits = str(getattr(trainer.state.fn, "value", "")) == "fit"
    return Context.TRAINING.value if stage is not None and fits else stage


def writes_later(trainer: Any) -> bool:
    """Tell whether a Trainer's checkpoints are written by a thread, one after the other."""
    writers = writers_of(attribute(attribute(trainer, "strategy"), "checkpoint_io"))
    return any("Async" in kind.__name__ for one in writers for kind in one.__class__.__mro__)


def paths_of_call(trainer: Any) -> list[str]:
    """Return where the ``Trainer.save_checkpoint`` saves that this call comes from.

    Several, the first first, where a Trainer of the user's has a ``save_checkpoint`` of its own
    that calls Lightning's with another path, and may move the file then.

    Source:
        No hook of Lightning 2.6 is given the path: ``on_save_checkpoint`` comes from within
        ``save_checkpoint(filepath, ...)``, before the file is written. The caller's arguments are
        looked at, nothing is changed.
    """
    found: list[str] = []
    for told in calls_of("save_checkpoint", sys._getframe(1)):  # noqa: SLF001
        if told.get("self") is trainer and told.get("filepath") is not None:
            found.append(_settled(str(told["filepath"])))
        elif found:
            break
    return list(dict.fromkeys(found))


def _settled(path: str) -> str:
    """Return a path as it stays, whoever changes the working folder later; fsspec knows ``~``."""
    if is_remote(path) or PurePath(path).is_absolute():
        return path
    return str(Path.cwd() / (local_path(path) or Path(path).expanduser()))
