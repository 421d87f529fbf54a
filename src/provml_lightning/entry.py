"""What Lightning asks of every package that it finds installed."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["callbacks"]


def callbacks() -> list[Any]:
    """Return the callbacks of the loggers that a new Trainer is given.

    Lightning calls this for every Trainer, also those without our loggers. Nothing is imported
    here: where no logger of ours was, the Trainer can have none.

    Source:
        The entry points ``lightning.pytorch.callbacks_factory`` and
        ``pytorch_lightning.callbacks_factory``.
    """
    meeting = sys.modules.get("provml_lightning.loggers.meeting")
    found: list[Any] = [] if meeting is None else meeting.callbacks_of(sys._getframe(1))  # noqa: SLF001
    return found
