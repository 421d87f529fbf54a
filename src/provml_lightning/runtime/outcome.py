"""How a run ended, from the exception that ended it."""

from __future__ import annotations

import dataclasses
import time

from provml_lightning.domain.records import Ended, Status
from provml_lightning.domain.redaction import redact

__all__ = ["ended", "outcome_of"]

_LONGEST_MESSAGE = 2000


def outcome_of(error: BaseException | None) -> Status:
    """Return the status that an exception, or none, means.

    Source:
        Lightning turns SIGTERM into ``SIGTERMException``, a SystemExit without a code.
    """
    if error is None:
        return Status.COMPLETED
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "SIGTERMException":
        return Status.INTERRUPTED
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return Status.COMPLETED
    return Status.FAILED


def ended(
    status: Status, error: BaseException | None, *, final: bool, told: Ended | None = None
) -> Ended:
    """Return the record of an end; one that was told before stands, as the final one.

    The message is redacted and cut at 2000 characters; no traceback, whose lines may hold secrets.
    """
    if told is not None:
        return dataclasses.replace(told, final=final)
    if error is None:
        return Ended(time=time.time_ns(), status=status, final=final)
    kind = type(error)
    return Ended(
        time=time.time_ns(),
        status=status,
        final=final,
        error_type=f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."),
        error_message=redact(_message(error))[:_LONGEST_MESSAGE],
    )


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001  a foreign __str__ may raise anything
        return f"<its message raised {type(failure).__name__}>"
