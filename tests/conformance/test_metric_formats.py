"""Each form of metrics files keeps the promises of the kit."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.settings import CompressorType, MetricsType
from provml_lightning.errors import ConfigurationError, MissingExtraError, UnsupportedFormatError
from provml_lightning.storage.formats import format_of, open_format
from provml_lightning.storage.point_log import ABSENT
from tests.conformance.metric_format_kit import LOSS, MetricFormatKit, Row, block, rows

if TYPE_CHECKING:
    from pathlib import Path

    from provml_lightning.storage.formats.base import MetricsFormat

NONE, ZIP, ZSTD, BLOSC, LZ4 = map(CompressorType, ("none", "zip", "zstd", "blosc_zstd", "lz4"))


class TestParquet(MetricFormatKit):
    kind = MetricsType.PARQUET

    @pytest.fixture(params=[None, False], ids=repr)
    def options(self, request: pytest.FixtureRequest) -> dict[str, Any]:
        return {"compressor": request.param}

    def read_elsewhere(self, path: Path, key: str, **_: Any) -> list[Row]:
        from pyarrow import dataset

        table = dataset.dataset(path).to_table(filter=dataset.field("metric") == key)
        columns = [table[n].to_pylist() for n in ("step", "epoch", "value")]
        times = table["timestamp"].cast("int64").to_pylist()
        return _rows(*columns, times, table["rank"].to_pylist())


class TestCsv(MetricFormatKit):
    kind = MetricsType.CSV

    @pytest.fixture(
        params=[(",", None), (",", False), (";", NONE), ("\t", ZIP), ("|", True), (",", ZSTD)],
        ids=repr,
    )
    def options(self, request: pytest.FixtureRequest) -> dict[str, Any]:
        return dict(zip(("separator", "compressor"), request.param, strict=True))

    def read_elsewhere(self, path: Path, key: str, **options: Any) -> list[Row]:
        import pandas as pd

        if path.suffix == ".zst":
            # pandas needs a further package for zstd; unpacked it is the same file.
            import pyarrow as pa

            path = path.with_suffix("")
            with pa.input_stream(path.with_suffix(".csv.zst"), compression="zstd") as packed:
                path.write_bytes(packed.read())
        frame = pd.read_csv(
            path,
            sep=options["separator"],
            parse_dates=["timestamp"],
            dtype={"step": "Int64", "epoch": "Int64"},
        )
        assert ".".join(frame) == (
            "metric.context.source.step.epoch.value.timestamp.rank.segment.unit"
        )
        frame = frame[frame["metric"] == key]
        steps, epochs = ([None if pd.isna(n) else n for n in frame[c]] for c in ("step", "epoch"))
        times = frame["timestamp"].astype("datetime64[us, UTC]").astype("int64")
        return _rows(steps, epochs, frame["value"], times, frame["rank"])


class TestZarr(MetricFormatKit):
    kind = MetricsType.ZARR

    @pytest.fixture(params=[None, False, BLOSC], ids=repr)
    def options(self, request: pytest.FixtureRequest) -> dict[str, Any]:
        return {"compressor": request.param}

    def read_elsewhere(self, path: Path, key: str, **_: Any) -> list[Row]:
        import xarray as xr

        with xr.open_zarr(path, group=key, consolidated=True) as found:
            assert found.attrs == {"name": key, "context": "Training", "source": None}
            return _from_xarray(found)

    def damage(self, path: Path) -> None:
        shutil.rmtree(path / "loss" / "value" / "c")


class TestNetcdf(MetricFormatKit):
    kind = MetricsType.NETCDF

    @pytest.fixture(params=[None, False], ids=repr)
    def options(self, request: pytest.FixtureRequest) -> dict[str, Any]:
        return {"compressor": request.param}

    def read_elsewhere(self, path: Path, key: str, **_: Any) -> list[Row]:
        import xarray as xr

        with xr.open_dataset(path, group=key, engine="netcdf4") as found:
            assert found.attrs["name"] == key
            return _from_xarray(found)

    @pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
    def test_xarray_opens_it_with_either_library(
        self, engine: Any, form: MetricsFormat, path: Path
    ) -> None:
        import xarray as xr

        form.write(path, [block(np.arange(100_001), unit="J")])
        with xr.open_dataset(path, group="loss", engine=engine) as found:
            assert found.attrs["unit"] == "J"
            assert found.sizes == {"row": 100_001}
            assert found["value"][-1] == 100_000

    def test_netcdf4_reads_every_group_and_masks_what_is_absent(
        self, form: MetricsFormat, path: Path
    ) -> None:
        import netCDF4

        written = [block([0.5, 2], LOSS._replace(key=key), step=[4, ABSENT]) for key in "AB_a"]
        form.write(path, written)
        with netCDF4.Dataset(path) as found:
            assert set(found.groups) == {"_~@a", "_~@b", "_~_", "a"}
            group = found["_~@a"]
            assert group.name == "_~@a"
            assert group.getncattr("name") == "A"
            assert group.dimensions["row"].isunlimited()
            assert group["step"][:].tolist() == [4, None]
            assert group["value"][:].tolist() == [0.5, 2.0]
            assert netCDF4.num2date(group["timestamp"][0], group["timestamp"].units).year == 2026


def test_more_text_than_an_arrow_array_holds_is_written_in_parts(tmp_path: Path) -> None:
    # 31 000 times a name of 70 kB is 2.17 GB, and offsets of 32 bits reach 2.15 GB.
    name = MetricKey("x" * 70_000, "Training", None)
    form, path = open_format(MetricsType.PARQUET), tmp_path / "@training.parquet"
    whole = block(np.arange(31_000), name, unit="J")
    assert form.write(path, [block([1.0]), whole]) == 31_001
    found = [each for each in form.scan(path) if each.name == name]
    assert np.concatenate([each.value for each in found]).tolist() == list(range(31_000))
    assert np.concatenate([each.step for each in found]).tolist() == list(range(31_000))
    assert {each.unit for each in found} == {"J"}


def test_csv_is_what_rfc_4180_says(tmp_path: Path) -> None:
    form = open_format(MetricsType.CSV)
    path = tmp_path / "x.csv"
    first = block([0.1, np.nan], LOSS._replace(key='a "b",\nc'), step=[1, ABSENT], unit="J")
    form.write(path, [first, block([-np.inf], LOSS._replace(key="z", source=""), epoch=[2])])
    assert path.read_bytes().decode() == (
        "metric,context,source,step,epoch,value,timestamp,rank,segment,unit\n"
        '"a ""b"",\nc","Training",,1,,0.1,"2026-01-02T03:04:05.678901Z",0,1,"J"\n'
        '"a ""b"",\nc","Training",,,,nan,"2026-01-02T03:04:05.678902Z",0,1,"J"\n'
        '"z","Training","",0,2,-inf,"2026-01-02T03:04:05.678901Z",0,1,\n'
    )


def test_csv_is_read_whatever_separates_it(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    open_format(MetricsType.CSV, separator="|").write(path, [block([1, 2])])
    (found,) = open_format(MetricsType.CSV).scan(path)
    assert found.value.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("kind", "fitting"),
    [
        (MetricsType.PARQUET, (None, True, False, NONE, ZIP, ZSTD, LZ4)),
        (MetricsType.CSV, (None, True, False, NONE, ZIP, ZSTD)),
        (MetricsType.ZARR, (None, True, False, NONE, ZIP, ZSTD, BLOSC, LZ4)),
        (MetricsType.NETCDF, (None, True, False, NONE, ZIP)),
    ],
)
def test_every_compressor_that_fits_loses_nothing(
    kind: MetricsType, fitting: tuple[Any, ...], tmp_path: Path
) -> None:
    written = block([0.1, -0.0, np.nan, np.inf] * 500, unit="J", epoch=np.arange(2000))
    for number, compressor in enumerate(fitting):
        form = open_format(kind, compressor=compressor)
        path = tmp_path / f"{number}{form.suffix}"
        assert form.write(path, [written]) == form.count(path) == 2000
        assert rows(form.scan(path)) == rows([written])


@pytest.mark.parametrize(
    ("compressor", "codec"),
    [
        (None, "zstd"),
        (True, "zstd"),
        (False, None),
        (NONE, None),
        (ZSTD, "zstd"),
        (ZIP, "gzip"),
        (BLOSC, "blosc zstd"),
        (LZ4, "blosc lz4"),
    ],
)
def test_zarr_compresses_as_it_was_told(compressor: Any, codec: str | None, tmp_path: Path) -> None:
    open_format(MetricsType.ZARR, compressor=compressor).write(tmp_path / "x", [block([1])])
    array = json.loads((tmp_path / "x/loss/value/zarr.json").read_bytes())
    packing = [
        " ".join([c["name"], c["configuration"].get("cname", "")]).strip()
        for c in array["codecs"]
        if c["name"] != "bytes"
    ]
    assert packing == ([] if codec is None else [codec])
    assert array["zarr_format"] == 3
    assert array["dimension_names"] == ["row"]
    assert "consolidated_metadata" in json.loads((tmp_path / "x/zarr.json").read_bytes())


@pytest.mark.parametrize(
    ("compressor", "codec"), [(None, "gzip"), (True, "gzip"), (ZIP, "gzip"), (False, None)]
)
def test_netcdf_compresses_as_it_was_told(
    compressor: Any, codec: str | None, tmp_path: Path
) -> None:
    import h5py

    open_format(MetricsType.NETCDF, compressor=compressor).write(tmp_path / "x", [block([1])])
    with h5py.File(tmp_path / "x") as found:
        assert {found[f"loss/{name}"].compression for name in ("step", "value")} == {codec}


def test_a_second_writer_costs_no_chunk_of_its_own(tmp_path: Path) -> None:
    written = [block(np.arange(1000), writer=(rank, 1)) for rank in range(150)]
    open_format(MetricsType.ZARR).write(tmp_path / "x", written)
    chunks = sorted(path.name for path in (tmp_path / "x/loss/value/c").iterdir())
    assert chunks == ["0", "1"]


@pytest.mark.parametrize(
    ("kind", "compressor", "choices"),
    [
        (MetricsType.PARQUET, BLOSC, "'none', 'zstd', 'zip', 'lz4'"),
        (MetricsType.CSV, LZ4, "'none', 'zip', 'zstd'"),
        (MetricsType.CSV, BLOSC, "'none', 'zip', 'zstd'"),
        (MetricsType.NETCDF, ZSTD, "'none', 'zip'"),
        (MetricsType.NETCDF, LZ4, "'none', 'zip'"),
        (MetricsType.NETCDF, BLOSC, "'none', 'zip'"),
    ],
)
def test_a_compressor_that_does_not_fit_is_refused_with_the_choices(
    kind: MetricsType, compressor: CompressorType, choices: str
) -> None:
    with pytest.raises(UnsupportedFormatError, match=f"choose True, False or one of {choices}$"):
        open_format(kind, compressor=compressor)


@pytest.mark.parametrize("separator", ["", ",,", "5", ".", "-", "e", "n", '"', "\n", "\0", "§"])
def test_a_separator_that_could_be_in_a_number_is_refused(separator: str) -> None:
    with pytest.raises(ConfigurationError, match="csv_separator"):
        open_format(MetricsType.CSV, separator=separator)


@pytest.mark.parametrize(
    ("kind", "module", "remedy"),
    [
        (MetricsType.ZARR, "zarr.codecs", r"zarr>=3 is needed .*provml-lightning\[zarr\]"),
        (MetricsType.NETCDF, "h5py", r"h5py is needed .*provml-lightning\[netcdf\]"),
    ],
)
def test_a_form_whose_package_is_missing_says_which_extra_brings_it(
    kind: MetricsType, module: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(MissingExtraError, match=remedy):
        open_format(kind)


def test_a_file_that_is_none_of_ours_has_no_form() -> None:
    assert format_of("loss.txt") is None


def _from_xarray(found: Any) -> list[Row]:
    steps, epochs = (
        [None if np.isnan(number) else int(number) for number in found[name].values]
        for name in ("step", "epoch")
    )
    assert found["timestamp"].dims == ("row",)
    times = found["timestamp"].values.astype("datetime64[us]").astype("int64")
    return _rows(steps, epochs, found["value"].values, times, found["rank"].values)


def _rows(steps: Any, epochs: Any, values: Any, times: Any, ranks: Any) -> list[Row]:
    values = [None if np.isnan(value) else value for value in values]
    return [Row(*row) for row in zip(steps, epochs, values, times, ranks, strict=True)]
