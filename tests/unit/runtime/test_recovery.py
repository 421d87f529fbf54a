from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import prov4ml
from provml_lightning.domain.records import Status
from provml_lightning.runtime.recovery import needs_recovery, recover
from provml_lightning.storage.layout import RunLayout

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def _left_behind(tmp_path: Path, change: tuple[str, str]) -> RunLayout:
    """Return the files of an open run of which another process is said to be the writer."""
    with prov4ml.start_run("digits", provenance_save_dir=tmp_path) as run:
        prov4ml.log_metric("loss", 1.0)
        prov4ml.log_metric("loss", 2.0)
        copy = tmp_path / "copy" / "digits_0"
        shutil.copytree(run.directory, copy)
    journal = copy / "journal" / "rank-00000.jsonl"
    text, changed = re.subn(*change, journal.read_text(), count=1)
    assert changed
    journal.write_text(text)
    return RunLayout(copy)


def test_a_dead_writers_log_is_sealed(tmp_path: Path) -> None:
    layout = _left_behind(tmp_path, (r'"process_start":\d+', '"process_start":1'))

    assert needs_recovery(layout)
    found = recover(layout)

    assert found.whole
    assert (found.changed, found.status, found.values) == (True, Status.INCOMPLETE, 2)
    assert (found.torn, found.writing, found.kept) == (0, (), ())
    assert not layout.points_file("rank-00000").exists()
    assert not needs_recovery(layout)
    assert not recover(layout).changed


def test_the_log_of_a_process_elsewhere_is_kept_and_its_values_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = _left_behind(tmp_path, (r'"place":"[^"]*"', '"place":"another/machine"'))
    assert not recover(layout).whole, "it wrote a moment ago"

    monkeypatch.setattr("provml_lightning.storage.liveness.time.time", lambda: 1e12)
    found = recover(layout)

    assert found.whole
    assert [writer.rank for writer in found.kept] == [0]
    assert layout.points_file("rank-00000").exists()
    assert prov4ml.get_metric(layout.directory, "loss")["value"].tolist() == [1.0, 2.0]
