"""Which processes log, and how they find one folder."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from provml_lightning.errors import ConfigurationError
from provml_lightning.runtime.opening import agree
from provml_lightning.runtime.ranks import broadcast, has_process_group, world_size
from provml_lightning.runtime.rendezvous import note_path

__all__ = ["check_workers", "shared_folder", "sit_out", "workers"]


def check_workers(log_on_workers: Any) -> int | list[int]:
    """Return ``log_on_workers`` as itwinai reads it: a rank, -1 for all, or a list of ranks.

    Raises:
        ConfigurationError: It is neither.
    """
    several = isinstance(log_on_workers, (list, tuple))
    ranks = list(log_on_workers) if several else [log_on_workers]
    least = 0 if several else -1
    if not ranks or any(type(rank) is not int or rank < least for rank in ranks):
        raise ConfigurationError(
            f"log_on_workers={log_on_workers!r} must be a rank, a list of ranks, or -1 for all"
        )
    return ranks if several else ranks[0]


def workers(log_on_workers: int | list[int], rank: int) -> Collection[int]:
    """Return the ranks that log, as far as a process of a rank can know."""
    if isinstance(log_on_workers, list):
        return sorted(set(log_on_workers))
    if log_on_workers == -1:
        return range(max(world_size(), rank + 1))
    return (log_on_workers,)


def shared_folder(
    make: Callable[[], Path], ranks: Collection[int], rank: int, project: Path
) -> tuple[Path, Path | None]:
    """Return the folder that the least of several ranks makes, and the note that told of it.

    Raises:
        StorageError: It could make none, or could not be asked.
    """
    note = None
    if world_size() > 1 and not has_process_group():
        note = note_path(project, "workers")
    return agree(make, rank=rank, lead=min(ranks), note=note), note


def sit_out(ranks: Collection[int]) -> None:
    """Take part, on a rank that does not log, in what the process group does for those that do."""
    if len(ranks) > 1 and has_process_group():
        broadcast(None, min(ranks))
