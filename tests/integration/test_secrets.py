"""No file of a run holds a secret that its name or form gives away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import prov4ml

if TYPE_CHECKING:
    from pathlib import Path

HIDDEN = "pa55w0rdpa55w0rd"


def test_no_file_of_a_run_holds_a_secret_that_was_logged_with_its_name(tmp_path: Path) -> None:
    with prov4ml.start_run("e", provenance_save_dir=tmp_path):
        prov4ml.log_param("config", {"db": {"password": HIDDEN}, "accessToken": HIDDEN})
        prov4ml.log_param("headers", {"Authorization": f"Bearer {HIDDEN}"})
        prov4ml.log_param("text", f'{{"api_key": "{HIDDEN}"}}')
        prov4ml.log_input({"token": HIDDEN}, "settings")
        prov4ml.log_execution_command(f"train --token '{HIDDEN}")  # an open quote
        prov4ml.log_context("ours", source_of_data=f"https://me:{HIDDEN}@host/data")
        prov4ml.log_artifact("weights", b"", attributes={"token": HIDDEN, "lr": 1})
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 3
    assert [path for path in files if HIDDEN.encode() in path.read_bytes()] == []
