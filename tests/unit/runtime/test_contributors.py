from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prov4ml
from provml_lightning.domain.settings import RunSettings
from provml_lightning.errors import StorageError, StorageWarning
from provml_lightning.runtime.active import current
from provml_lightning.runtime.opening import open_run

if TYPE_CHECKING:
    from pathlib import Path


def test_a_contributor_is_asked_before_every_snapshot_and_before_the_close(tmp_path: Path) -> None:
    run = open_run(RunSettings(experiment_name="digits", provenance_save_dir=tmp_path))
    asked = 0

    def tell() -> None:
        nonlocal asked
        asked += 1
        run.record_metric("asked", float(asked), step=asked)

    run.contributors.add(tell)
    run.snapshot()
    run.close()
    run.close()

    values = prov4ml.get_metric(tmp_path / "digits_0", "asked")["value"].tolist()
    assert values == [1.0, 2.0]


def test_a_contributor_that_fails_is_a_warning_and_the_run_is_whole(tmp_path: Path) -> None:
    run = open_run(RunSettings(experiment_name="digits", provenance_save_dir=tmp_path))

    def fail() -> None:
        raise StorageError("the disk is full")

    run.contributors.add(fail)
    run.record_metric("loss", 0.5)
    with pytest.warns(StorageWarning, match="the disk is full"):
        run.close()

    assert prov4ml.get_metric(tmp_path / "digits_0", "loss")["value"].tolist() == [0.5]


def test_after_a_run_s_block_calls_go_to_the_run_around_it(tmp_path: Path) -> None:
    with prov4ml.start_run("outer", provenance_save_dir=tmp_path) as outer:
        with prov4ml.start_run("inner", provenance_save_dir=tmp_path):
            pass
        assert current() is outer
        prov4ml.log_metric("loss", 0.5)
    assert current() is None

    assert prov4ml.get_metric(tmp_path / "outer_0", "loss")["value"].tolist() == [0.5]
