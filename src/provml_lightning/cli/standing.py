"""How a run stands, in words and with what to do about it."""

from __future__ import annotations

import shlex

from rich.text import Text

from provml_lightning.cli.amounts import ABSENT
from provml_lightning.domain.records import Status
from provml_lightning.query.heads import RunHead

__all__ = ["advice", "status_text"]

_COLOURS = {
    Status.COMPLETED: "green",
    Status.RUNNING: "cyan",
    Status.FAILED: "bold red",
    Status.INTERRUPTED: "yellow",
    Status.INCOMPLETE: "bold yellow",
}


def status_text(status: Status | None) -> Text:
    """Return a status in its colour; a dash where nobody says."""
    return Text(ABSENT) if status is None else Text(status.value, style=_COLOURS[status])


def advice(head: RunHead) -> str:
    """Return what the reader must know of a run that is not whole, and do; else nothing."""
    if head.status is Status.RUNNING:
        return "still being written; this is what it has logged so far"
    died = head.status is Status.INCOMPLETE
    if head.settled:
        return "its process died before it ended the run; nothing that it logged is lost" * died
    why = "its process died" if died else "its documents lack what was logged last"
    remedy = f"prov4ml recover {shlex.quote(head.place)}"
    return f"{why}; all that was logged is below. To write its documents: {remedy}"
