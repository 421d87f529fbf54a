"""How much memory a control group leaves us: version 1, version 2 or both, whatever is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MemoryGroup", "memory_group"]

# What each version calls its files: limit, usage, and the key of its droppable page cache.
_DIALECTS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


class MemoryGroup(NamedTuple):
    """The control group whose limit binds.

    Attributes:
        limit: Memory that may be used in it [B].
        usage: The file that tells how much is.
        stat: The file that tells how much of that is page cache that can be dropped.
        droppable: The key of that number.
    """

    limit: int
    usage: Path
    stat: Path
    droppable: str

    def used(self) -> int:
        """Return the memory that is in use and could not be dropped [B]."""
        used = int(self.usage.read_text())
        for line in self.stat.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == self.droppable:
                return max(used - int(value), 0)
        return used


def memory_group(proc: Path, mounts: Path, most: int) -> MemoryGroup | None:
    """Return the group with the least limit among ours and its ancestors, below ``most`` [B].

    Args:
        proc: ``/proc``.
        mounts: ``/sys/fs/cgroup``.
        most: The machine's memory [B]; a limit that is not below it is none.
    """
    found = [
        group
        for folder in _folders(proc, mounts)
        for dialect in _DIALECTS
        if (group := _group(folder, *dialect)) is not None and group.limit < most
    ]
    return min(found, key=lambda group: group.limit, default=None)


def _folders(proc: Path, mounts: Path) -> list[Path]:
    """Return every folder that could be our group's or an ancestor's.

    In a container the path that the kernel tells is that of the host, and is not there; the
    mount's root is then our own group.
    """
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return []
    folders: dict[Path, None] = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            roots = [mounts, mounts / "unified"]
        elif "memory" in controllers.split(","):
            roots = [mounts / "memory", mounts / controllers]
        else:
            continue
        for root in roots:
            own = root / path.lstrip("/")
            above = [own, *own.parents]
            folders |= dict.fromkeys(above[: above.index(root) + 1])
    return list(folders)


def _group(folder: Path, limit: str, usage: str, droppable: str) -> MemoryGroup | None:
    try:
        text = (folder / limit).read_text().strip()
        int((folder / usage).read_text())
    except (OSError, ValueError):
        return None
    if not text.isdecimal():  # "max"
        return None
    return MemoryGroup(int(text), folder / usage, folder / "memory.stat", droppable)
