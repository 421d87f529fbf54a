"""Items of any kind on their way into a run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from provml_lightning.domain.context import canonical_context
from provml_lightning.domain.records import Note
from provml_lightning.errors import (
    ConfigurationError,
    RecordDroppedWarning,
    RecordError,
    SamplerError,
)
from provml_lightning.loggers.itwinai_base import known_kinds
from provml_lightning.loggers.kinds import KINDS
from provml_lightning.loggers.recording import excused
from provml_lightning.loggers.stages import context_of_name, context_of_stage
from provml_lightning.runtime.active import aimed_at
from provml_lightning.runtime.faults import warn
from provml_lightning.runtime.run import Run

__all__ = ["Items", "each_named", "require_known"]


class Items:
    """Keeps items in a run; what cannot be kept never stops a training."""

    def __init__(self) -> None:
        self._missing: set[str] = set()

    def keep(
        self,
        run: Run,
        kind: str,
        item: Any,
        name: str,
        context: str | None,
        step: int | None,
        trainer: Any = None,
    ) -> None:
        """Keep one item; its context is what is told, what a Trainer does, or what its name says.

        Raises:
            ProvMLError: It cannot be kept and the run is strict.
        """
        with excused(run, f"{kind} {name!r}"):
            stage = None if trainer is None else context_of_stage(trainer)
            where = _where(kind, name, context, stage)
            try:
                if kind == "metric":
                    epoch = None if stage is None else trainer.current_epoch
                    run.record_metric(name, item, where, step, epoch=epoch)
                else:
                    with aimed_at(run):
                        KINDS[kind](item, name, where, step)
            except SamplerError as error:
                self._miss(run, kind, error)

    def _miss(self, run: Run, kind: str, error: SamplerError) -> None:
        """Say once what this machine cannot measure."""
        if kind in self._missing:
            return
        self._missing.add(kind)
        run.record(Note(time=time.time_ns(), topic=kind, message=str(error)))
        warn(f"{run.directory.name}: {error}", RecordDroppedWarning)


def _where(kind: str, name: str, context: str | None, stage: str | None) -> str | None:
    """Return the context that an item belongs to."""
    told = canonical_context(context)
    if told is not None or kind == "param":
        return told
    return stage or context_of_name(name.removeprefix("global_"))  # as TorchTrainer names


def each_named(item: Any, identifier: Any, kind: str) -> Iterator[tuple[Any, str]]:
    """Yield items with their names: the one, or those of two lists; without a name, its kind.

    Raises:
        RecordError: The lists differ in length.
    """
    if not isinstance(identifier, (list, tuple)):
        yield item, kind if identifier is None else str(identifier)
        return
    if not isinstance(item, (list, tuple)) or len(item) != len(identifier):
        raise RecordError(f"{len(identifier)} names {identifier!r} need a list of as many items")
    yield from zip(item, map(str, identifier), strict=True)


def require_known(kind: str) -> None:
    """Let a kind pass that some other logger of itwinai knows.

    Raises:
        ConfigurationError: None does.
    """
    known = known_kinds()
    if kind not in known:
        raise ConfigurationError(
            f"kind={kind!r} is unknown; choose one of {', '.join(map(repr, sorted(known)))}"
        )
