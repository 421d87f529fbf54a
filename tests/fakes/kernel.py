"""Folders that look like what the kernel shows: powercap, control groups, procfs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["RANGE", "Zone", "write_files"]

RANGE = 262_143_328_850  # where most packages' counters wrap [µJ]


class Zone:
    """A power zone in a folder."""

    def __init__(self, root: Path, path: str, name: str, count: int, wraps: object = RANGE) -> None:
        self.folder = root / path
        self.folder.mkdir(parents=True)
        (self.folder / "name").write_text(f"{name}\n")
        (self.folder / "max_energy_range_uj").write_text(f"{wraps}\n")
        self.file = self.folder / "energy_uj"
        self.set(count)

    def set(self, count: object) -> None:
        """Let the counter show something."""
        self.file.write_text(f"{count}\n")


def write_files(root: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder, and return it."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root
