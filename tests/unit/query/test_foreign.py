from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from provml_lightning.errors import (
    MalformedDocumentError,
    MissingExtraError,
    SeriesUnavailableError,
)
from provml_lightning.query.foreign import read_foreign

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_a_csv_is_read_with_whatever_separates_it(separator: str, tmp_path: Path) -> None:
    rows = (("epoch", "value", "timestep"), ("0", "0.1", "1000"), ("None", "1e-300", ""))
    file = tmp_path / "m.csv"
    file.write_text("\r\n".join(separator.join(row) for row in rows))
    frame = read_foreign(file, ".csv", "m.csv")
    assert frame["value"].tolist() == [0.1, 1e-300]
    assert frame["epoch"].isna().tolist() == [False, True]
    assert frame["timestamp"][0] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)


def test_rows_stay_in_the_order_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("epoch,value,timestep\n0,0,1\n2,2,2\n1,1,3\n3,3,4\n")
    frame = read_foreign(tmp_path / "m.csv", ".csv", "m.csv")
    assert frame["step"].tolist() == [0, 2, 1, 3]


def test_a_csv_without_a_line_is_a_metric_without_values(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("\n\n")
    frame = read_foreign(tmp_path / "m.csv", ".csv", "m.csv")
    assert (len(frame), list(frame.columns)[2]) == (0, "value")


@pytest.mark.parametrize(
    "text",
    [
        "epoch,value,timestep\n0,tensor(1),1\n",
        "epoch,value,timestep\n0,1,2,3\n",
        "epoch,value,timestep\n0.5,1,2\n",
        "a,b,c\n0,1,2\n",
    ],
)
def test_a_csv_that_holds_no_series_is_refused_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(MalformedDocumentError, match=r"m\.csv"):
        read_foreign(tmp_path / "m.csv", ".csv", "m.csv")


def test_a_file_of_an_unknown_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SeriesUnavailableError, match=r"not from '\.pkl'"):
        read_foreign(tmp_path / "m.pkl", ".pkl", "m.pkl")


@pytest.mark.parametrize(
    ("package", "suffix", "extra"), [("h5py", ".nc", "netcdf"), ("zarr", ".zarr", "zarr")]
)
def test_a_reader_that_is_not_installed_is_named_with_its_extra(
    package: str, suffix: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package} is needed.*\[{extra}\]"):
        read_foreign(tmp_path / f"m{suffix}", suffix, f"m{suffix}")


def test_a_netcdf_file_is_read(tmp_path: Path) -> None:
    h5netcdf = pytest.importorskip("h5netcdf")
    with h5netcdf.File(tmp_path / "m.nc", "w") as file:
        file.dimensions = {"time": None}
        for name, kind, values in (
            ("epochs", "i4", [0, 1]),
            ("values", "f4", [0.5, 0.25]),
            ("timestamps", "i8", [1796012600639, 1796012600743]),
        ):
            variable = file.create_variable(name, ("time",), kind)
            file.resize_dimension("time", 2)
            variable[:] = values
    _holds_two_values(tmp_path / "m.nc")


def test_a_zarr_group_is_read(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    numpy = pytest.importorskip("numpy")
    group = zarr.open_group(str(tmp_path / "m.zarr"), mode="w")
    group.create_array("epochs", data=numpy.array([0, 1], "i4"))
    group.create_array("values", data=numpy.array([0.5, 0.25], "f4"))
    group.create_array("timestamps", data=numpy.array([1796012600639, 1796012600743], "i8"))
    _holds_two_values(tmp_path / "m.zarr")


def test_a_damaged_file_is_no_series(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    (tmp_path / "m.nc").write_bytes(b"not HDF5")
    (tmp_path / "m.zarr").mkdir()
    for suffix in (".nc", ".zarr"):
        with pytest.raises(SeriesUnavailableError, match=f"m{suffix}"):
            read_foreign(tmp_path / f"m{suffix}", suffix, f"m{suffix}")


def _holds_two_values(file: Path) -> None:
    frame = read_foreign(file, file.suffix, file.name)
    assert frame["epoch"].tolist() == [0, 1]
    assert frame["value"].tolist() == [0.5, 0.25]
    assert frame["timestamp"][1] == datetime(2026, 11, 30, 4, 23, 20, 743000, tzinfo=UTC)
