"""Which commit of its code a process ran."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Commit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The state of the git repository that the code of this process lies in.

    Attributes:
        dirty: Whether tracked files differed from the commit, or the script was none of them.
        remote: URL, without credentials.
    """

    time: int
    commit: str
    branch: str | None = None
    dirty: bool | None = None
    remote: str | None = None
