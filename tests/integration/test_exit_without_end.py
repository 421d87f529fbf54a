"""A script that ends without ``end_run``: its run is folded, summed up and written all the same."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import prov4ml
from provml_lightning.errors import IncompleteRunWarning

if TYPE_CHECKING:
    from pathlib import Path

# It imports nothing else, so that what reads metrics is first imported while Python exits.
SCRIPT = """
import sys
import prov4ml
prov4ml.start_run("open", provenance_save_dir=sys.argv[1], metrics_file_type=sys.argv[2])
for step, loss in enumerate([3.0, 1.0, 2.0]):
    prov4ml.log_metric("loss", loss, "Training", step)
prov4ml.register_final_metric("loss", 0.0, prov4ml.FoldOperation.MAX)
prov4ml.log_system_metrics("Training", 0)
"""


def end(folder: Path, form: str) -> str:
    command = [sys.executable, "-c", SCRIPT, str(folder), form]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert "Traceback" not in told.stderr
    return told.stderr


@pytest.mark.parametrize("form", ["parquet", "csv", "netcdf"])
def test_its_documents_hold_everything(tmp_path: Path, form: str) -> None:
    assert end(tmp_path, form) == ""
    folder = tmp_path / "open_0"
    assert prov4ml.get_parameter(folder, "open_0", "status") == "completed"
    assert prov4ml.get_parameter(folder, "open_0", "final_max_loss") == 3.0
    assert prov4ml.get_parameter(folder, "Training", "energy") > 0
    assert prov4ml.get_metric(folder, "loss")["value"].tolist() == [3.0, 1.0, 2.0]


def test_a_form_that_needs_threads_is_said_to_wait_for_recovery(tmp_path: Path) -> None:
    # zarr 3 writes through threads, and Python starts none while it exits.
    assert f"'prov4ml recover {tmp_path / 'open_0'}'" in end(tmp_path, "zarr")
    with pytest.warns(IncompleteRunWarning, match="answered from its journal"):
        frame = prov4ml.get_metric(tmp_path / "open_0", "loss")
    assert frame["value"].tolist() == [3.0, 1.0, 2.0]
