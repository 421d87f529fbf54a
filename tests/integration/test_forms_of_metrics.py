"""A run's values in each form that metrics files can have, asked for as users do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from provml_lightning.domain.settings import RunSettings
from provml_lightning.errors import SeriesUnavailableError, UnsupportedFormatError
from provml_lightning.query import get_metric, list_metric_paths
from provml_lightning.runtime.opening import open_run
from provml_lightning.runtime.run import Run

FORMS = [
    ("parquet", None, ".parquet"),
    ("csv", None, ".csv"),
    ("csv", "zip", ".csv.gz"),
    ("csv", "zstd", ".csv.zst"),
    ("zarr", None, ".zarr"),
    ("netcdf", None, ".nc"),
]


def _run(tmp_path: Path, kind: str, compressor: str | None) -> Path:
    settings = RunSettings(
        experiment_name="digits",
        provenance_save_dir=tmp_path,
        metrics_file_type=kind,  # type: ignore[arg-type]
        csv_separator=";",
        use_compressor=compressor,  # type: ignore[arg-type]
    )
    with open_run(settings) as run:
        for step in range(3):
            run.record_metric('a/b; "c"', step / 4, "Training", step, epoch=0)
            run.record_metric("Loss", -step, "my own", step, "probe")
    return tmp_path / "digits_0"


@pytest.fixture(params=FORMS, ids=lambda form: form[2])
def form(request: pytest.FixtureRequest) -> Any:
    return request.param


def _is_whole(data: Any) -> None:
    frame = get_metric(data, 'a/b; "c"', "training")
    assert frame["value"].tolist() == [0.0, 0.25, 0.5]
    assert frame["step"].tolist() == [0, 1, 2]
    assert frame["epoch"].tolist() == [0, 0, 0]
    assert frame.dtypes.astype(str).to_dict() == {
        "step": "Int64",
        "epoch": "Int64",
        "value": "float64",
        "timestamp": "datetime64[us, UTC]",
        "rank": "Int64",
    }
    assert get_metric(data, "Loss")["value"].tolist() == [0.0, -1.0, -2.0]


def test_each_form_answers_the_same(form: Any, tmp_path: Path) -> None:
    folder = _run(tmp_path, *form[:2])
    assert sorted(path.name for path in (folder / "metrics").iterdir()) == [
        f"Training{form[2]}",
        f"my%20own{form[2]}",
    ]
    _is_whole(folder)
    _is_whole(folder / "prov_digits_0.json")


def test_a_document_and_its_metrics_are_enough(form: Any, tmp_path: Path) -> None:
    folder = _run(tmp_path, *form[:2])
    for name in ("journal", "run.json"):
        place = folder / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    moved = folder.rename(tmp_path / "elsewhere")
    _is_whole(moved / "prov_digits_0.json")


def test_paths_are_listed_by_the_type_of_their_file(form: Any, tmp_path: Path) -> None:
    folder = _run(tmp_path, *form[:2])
    paths = list_metric_paths(folder, file_type=form[0])
    assert sorted({Path(path).name for path in paths.values()}) == [
        f"Training{form[2]}",
        f"my%20own{form[2]}",
    ]
    assert all(Path(path).exists() for path in paths.values())
    other = "csv" if form[0] != "csv" else "nc"
    assert list_metric_paths(folder, file_type=other) == {}
    with pytest.raises(UnsupportedFormatError, match="choose one of 'parquet', 'csv'"):
        list_metric_paths(folder, file_type="hdf")


def test_the_index_tells_size_and_digest_of_each_file(form: Any, tmp_path: Path) -> None:
    folder = _run(tmp_path, *form[:2])
    files = json.loads((folder / "run.json").read_bytes())["files"]
    found = {file["path"]: file["size"] for file in files if file["path"].startswith("metrics/")}
    sizes = {
        f"metrics/{path.name}": sum(
            p.stat().st_size for p in (path, *path.rglob("*")) if p.is_file()
        )
        for path in (folder / "metrics").iterdir()
    }
    assert found == sizes


@pytest.mark.parametrize(("kind", "compressor"), [("csv", "zip"), ("netcdf", None)])
def test_a_file_in_an_archive_is_read(kind: str, compressor: str | None, tmp_path: Path) -> None:
    folder = _run(tmp_path, kind, compressor)
    _is_whole(shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, folder.name))


def test_a_file_that_is_damaged_is_named(form: Any, tmp_path: Path) -> None:
    folder = _run(tmp_path, *form[:2])
    path = folder / "metrics" / f"Training{form[2]}"
    if path.is_dir():
        (path / "zarr.json").write_bytes(b"{")
    else:
        path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(SeriesUnavailableError, match="Training"):
        get_metric(folder, 'a/b; "c"')


def test_a_run_keeps_the_form_that_it_began_with(tmp_path: Path) -> None:
    folder = _run(tmp_path, "zarr", None)
    settings = RunSettings(experiment_name="digits", provenance_save_dir=tmp_path, use_run_id=0)
    run = open_run(settings)
    assert isinstance(run, Run)
    with run:
        run.record_metric('a/b; "c"', 0.75, "Training", 3)
    assert get_metric(folder, 'a/b; "c"')["value"].tolist() == [0.0, 0.25, 0.5, 0.75]
    assert {path.suffix for path in (folder / "metrics").iterdir()} == {".zarr"}


def test_what_does_not_fit_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    settings = RunSettings(
        experiment_name="digits",
        provenance_save_dir=tmp_path / "prov",
        metrics_file_type="netcdf",  # type: ignore[arg-type]
        use_compressor="lz4",  # type: ignore[arg-type]
    )
    with pytest.raises(UnsupportedFormatError, match="'none', 'zip'"):
        open_run(settings)
    assert not (tmp_path / "prov").exists()
