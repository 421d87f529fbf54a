from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provml_lightning.domain.context import Context, canonical_context
from provml_lightning.errors import ConfigurationError, StorageError
from provml_lightning.storage.layout import RunLayout, attach, reserve, run_folder


def test_runs_are_counted_on_from_the_highest(tmp_path: Path) -> None:
    for name in ("exp_3", "exp_10", "EXP_11", "exp_12x", "other_50", "exp_"):
        (tmp_path / name).mkdir()
    assert reserve(tmp_path, "exp_") == (tmp_path / "exp_12", 12)
    assert reserve(tmp_path, "new_") == (tmp_path / "new_0", 0)
    assert reserve(tmp_path / "a" / "b", "e_")[1] == 0


def test_a_project_that_is_no_folder_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="save_dir="):
        reserve(tmp_path / "file", "exp_")


def test_a_folder_is_made_or_joined_and_a_link_never_followed(tmp_path: Path) -> None:
    assert attach(tmp_path / "run")
    assert not attach(tmp_path / "run")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    for name in ("link", "dangling", "file"):
        with pytest.raises(ConfigurationError, match="a run cannot lie there"):
            attach(tmp_path / name)


def test_journals_come_by_rank_and_segment_and_strangers_do_not(tmp_path: Path) -> None:
    layout = RunLayout(tmp_path)
    assert layout.journal_files() == []
    assert not layout.is_run()
    layout.journal.mkdir()
    known = ["rank-00000", "rank-00000.2", "rank-00000.10", "rank-00001", "rank-100000"]
    for name in [*known, "rank-0", "x", ".rank-00000", "rank-00000.points"]:
        layout.journal_file(name).touch()
    (layout.journal / "rank-00000.jsonl.123.tmp").touch()
    assert [path.stem for path in layout.journal_files()] == known
    assert layout.is_run()


def test_the_files_of_the_contexts_are_called_so(tmp_path: Path) -> None:
    layout = RunLayout(tmp_path)
    names = [None, "Training", "my context", "~run", "run", ""]
    assert [layout.metrics_file(name, ".parquet").name for name in names] == [
        "~run.parquet",
        "Training.parquet",
        "my%20context.parquet",
        "%7erun.parquet",
        "run.parquet",
        "~.parquet",
    ]


CONTEXTS = st.none() | st.text() | st.sampled_from([*Context, "training", "TRAINING", "~run"])


@given(CONTEXTS, CONTEXTS)
def test_two_contexts_never_share_a_file(one: str | None, other: str | None) -> None:
    one, other = canonical_context(one), canonical_context(other)
    if one != other:
        layout = RunLayout(Path("run"))
        files = {layout.metrics_file(c, ".parquet").name.casefold() for c in (one, other)}
        assert len(files) == 2


def test_a_runs_folder_is_experiment_and_number() -> None:
    assert run_folder("digits", 3) == "digits_3"
    assert run_folder("../a b", 0) == "%2e.%2fa%20b_0"
