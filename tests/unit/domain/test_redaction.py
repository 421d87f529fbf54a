from __future__ import annotations

import time

import pytest

from provml_lightning.domain.redaction import redact


@pytest.mark.parametrize("text", ["x" * 200_000, "token_" * 30_000, "a://" * 50_000])
def test_a_long_text_takes_a_time_that_grows_with_its_length_alone(text: str) -> None:
    before = time.process_time()
    redact(text)
    assert time.process_time() - before < 5  # a quadratic search takes minutes


def test_a_password_in_a_url_is_masked() -> None:
    assert redact("git+https://me:secret@host/repo") == "git+https://***@host/repo"
    assert redact("1https://me:secret@host") == "1https://***@host"
