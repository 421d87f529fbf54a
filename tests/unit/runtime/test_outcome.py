from __future__ import annotations

import pytest

from provml_lightning.domain.records import Ended, Status
from provml_lightning.runtime.outcome import ended, outcome_of


class SIGTERMException(SystemExit):
    """Lightning raises one of this name when it was asked to end."""


class Rude(Exception):  # noqa: N818
    """Has no message that can be had."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (None, Status.COMPLETED),
        (SystemExit(), Status.COMPLETED),
        (SystemExit(0), Status.COMPLETED),
        (SystemExit(1), Status.FAILED),
        (SystemExit("message"), Status.FAILED),
        (KeyboardInterrupt(), Status.INTERRUPTED),
        (SIGTERMException(), Status.INTERRUPTED),
        (ValueError(), Status.FAILED),
        (MemoryError(), Status.FAILED),
    ],
)
def test_the_exception_that_ended_a_run_says_how(
    error: BaseException | None, status: Status
) -> None:
    assert outcome_of(error) is status


def test_a_failure_is_told_with_its_type_and_without_secrets() -> None:
    end = ended(Status.FAILED, ValueError("login with password=hunter2 failed"), final=True)
    assert (end.error_type, end.final) == ("ValueError", True)
    assert end.error_message is not None
    assert "hunter2" not in end.error_message


def test_a_message_is_bounded_and_never_fails() -> None:
    long = ended(Status.FAILED, ValueError("x" * 10_000), final=True).error_message
    assert long == "x" * 2000
    assert ended(Status.FAILED, Rude(), final=True).error_message == (
        "<its message raised RuntimeError>"
    )


def test_an_end_that_was_told_before_stands() -> None:
    told = Ended(time=1, status=Status.INTERRUPTED)
    assert ended(Status.COMPLETED, None, final=True, told=told) == Ended(
        time=1, status=Status.INTERRUPTED, final=True
    )
