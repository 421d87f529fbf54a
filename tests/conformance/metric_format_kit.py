"""What every form of metrics files has to keep; a form's test class inherits it."""

from __future__ import annotations

import struct
import tracemalloc
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.settings import MetricsType, RunSettings
from provml_lightning.errors import StorageError
from provml_lightning.query import get_metric
from provml_lightning.runtime.opening import open_run
from provml_lightning.runtime.run import Run
from provml_lightning.storage.formats import format_of, open_format, type_of
from provml_lightning.storage.formats.base import Block, block_order
from provml_lightning.storage.layout import RunLayout
from provml_lightning.storage.point_log import ABSENT
from provml_lightning.storage.series import read_series

if TYPE_CHECKING:
    from pathlib import Path

    from provml_lightning.storage.formats.base import MetricsFormat

__all__ = ["MetricFormatKit", "Row", "block"]

LOSS = MetricKey("loss", "Training", None)
# 2026-01-02T03:04:05.678901Z
TIME = 1_767_323_045_678_901
ODD_KEYS = [
    "", " ", ".", "..", "/", "a/b", "a\\b", "a", "A", "a,b;c\td|e", 'say "so"', "it's", "nul\0in",
    "two\nlines", "carriage\rreturn", "both\r\n", "null", "None", "nan", "con", "__init__", "_A",
    "step", "rank", "größe", "損失", "\U0001f600", "e\u0301", "\u00e9", "x" * 200, "x" * 200 + "y",
    "#", "%41", "@a", "=", "a=b", "-1", "1.0", "\ufeffmark", "trailing ", "~", "zarr.json",
]  # fmt: skip
ODD_SOURCES = [None, "", "None", "a", "A", "a,b\n\"c\"", "x" * 200]  # fmt: skip


class Row(NamedTuple):
    """A value as another tool reads it; NaN is None, as no two NaN are equal."""

    step: int | None
    epoch: int | None
    value: float | None
    microseconds: int
    rank: int


def block(
    values: Any,
    name: MetricKey = LOSS,
    *,
    unit: str | None = None,
    writer: tuple[int, int] = (0, 1),
    step: Any = None,
    epoch: Any = None,
    time: Any = None,
) -> Block:
    """Return a block; steps and times count up where none are given."""
    value = np.asarray(values, "f8")
    count = np.arange(len(value))

    def column(given: Any, otherwise: Any) -> Any:
        return np.asarray(otherwise if given is None else given, "i8")

    return Block(
        name, unit, *writer,
        time=column(time, TIME + count) * 1000,
        step=column(step, count),
        epoch=column(epoch, np.full(len(value), ABSENT)),
        value=value,
    )  # fmt: skip


def rows(blocks: Any) -> list[tuple[Any, ...]]:
    """Return all that blocks say, a tuple a value; floats as their bits."""
    return [
        (*b.name, b.unit, b.rank, b.segment, int(t), int(s), int(e), struct.pack("<d", v))
        for b in blocks
        for t, s, e, v in zip(b.time, b.step, b.epoch, b.value, strict=True)
    ]


class MetricFormatKit(ABC):
    """The promises; ``kind`` and ``options`` say which form keeps them."""

    kind: MetricsType

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        """The options of ``open_format``."""
        return {}

    @pytest.fixture
    def form(self, options: dict[str, Any]) -> MetricsFormat:
        return open_format(self.kind, **options)

    @pytest.fixture
    def path(self, form: MetricsFormat, tmp_path: Path) -> Path:
        return tmp_path / f"Training{form.suffix}"

    @abstractmethod
    def read_elsewhere(self, path: Path, key: str, **options: Any) -> list[Row]:
        """Return the rows of a metric without a source as a tool reads it that is not ours."""

    def test_every_float64_reads_back_bit_for_bit(self, form: MetricsFormat, path: Path) -> None:
        random = np.random.default_rng(1).integers(0, 2**63, 1000).view("f8")
        edges = [
            0.0,
            -0.0,
            5e-324,
            1.7976931348623157e308,
            0.1,
            1 / 3,
            16777217.0,
            1e16,
            1e22,
            123.0,
        ]
        written = block([*edges, *random[~np.isnan(random)], np.nan, np.inf, -np.inf])
        assert form.write(path, [written]) == len(written.value)
        assert rows(form.scan(path)) == rows([written])

    def test_absent_steps_and_epochs_are_not_zero(self, form: MetricsFormat, path: Path) -> None:
        written = block([1, 2, 3], step=[0, ABSENT, 2], epoch=[ABSENT, 0, -1])
        form.write(path, [written])
        (found,) = form.scan(path)
        assert found.step.tolist() == [0, ABSENT, 2]
        assert found.epoch.tolist() == [ABSENT, 0, -1]

    def test_steps_reach_to_the_ends_of_int64(self, form: MetricsFormat, path: Path) -> None:
        ends = [-(2**63) + 1, -1, 0, 2**53 + 1, 2**63 - 1]
        form.write(path, [block([0] * 5, step=ends, epoch=ends[::-1])])
        (found,) = form.read(path, LOSS)
        assert found.step.tolist() == ends
        assert found.epoch.tolist() == ends[::-1]

    def test_times_are_exact_to_the_microsecond(self, form: MetricsFormat, path: Path) -> None:
        times = [TIME, TIME + 1, TIME - 1, 0, 1, -1, 9_000_000_000_000_000]
        form.write(path, [block([0] * 7, time=times)])
        (found,) = form.scan(path)
        assert (found.time // 1000).tolist() == times

    def test_any_name_comes_back_as_it_was(self, form: MetricsFormat, path: Path) -> None:
        names = [MetricKey(key, "my, \"context\"\n", None) for key in ODD_KEYS]  # fmt: skip
        names += [MetricKey(key, names[0].context, s) for s in ODD_SOURCES[1:] for key in ("", "a")]
        written = sorted((block([i], name) for i, name in enumerate(names)), key=block_order)
        form.write(path, written)
        assert rows(form.scan(path)) == rows(written)
        assert form.context_of(path) == 'my, "context"\n'
        for one in written:
            assert rows(form.read(path, one.name)) == rows([one])

    def test_values_of_the_run_itself_have_no_context(
        self, form: MetricsFormat, path: Path
    ) -> None:
        form.write(path, [block([1], MetricKey("loss", None, None))])
        assert form.context_of(path) is None
        assert [b.name.context for b in form.scan(path)] == [None]

    def test_a_metric_that_is_not_there_has_no_values(
        self, form: MetricsFormat, path: Path
    ) -> None:
        form.write(path, [block([1]), block([2], MetricKey("loss", "Training", "gpu"))])
        for name in (("los", None), ("losses", None), ("loss", ""), ("a", "gpu")):
            assert list(form.read(path, MetricKey(name[0], "Training", name[1]))) == []

    def test_values_keep_the_order_of_logging(self, form: MetricsFormat, path: Path) -> None:
        written = block([3, 1, 2, 1], step=[0, 2, 1, 2], time=[TIME, TIME - 5, TIME, TIME + 9])
        form.write(path, [written])
        assert rows(form.read(path, LOSS)) == rows([written])

    def test_writers_stay_apart(self, form: MetricsFormat, path: Path) -> None:
        writers = [(0, 1), (0, 2), (1, 1), (2, 1), (2**31 - 1, 7)]
        written = [block([rank, segment], writer=(rank, segment)) for rank, segment in writers]
        form.write(path, written)
        assert [(b.rank, b.segment) for b in form.scan(path)] == writers
        assert rows(form.read(path, LOSS)) == rows(written)

    def test_units_are_kept(self, form: MetricsFormat, path: Path) -> None:
        units = {"energy": "J", "free, as in °C": "°C", "loss": None, "power": "W"}
        written = [block([1, 2], MetricKey(k, None, None), unit=unit) for k, unit in units.items()]
        form.write(path, written)
        assert {b.name.key: b.unit for b in form.scan(path)} == units
        (power,) = form.read(path, MetricKey("power", None, None))
        assert power.unit == "W"

    def test_nothing_can_be_written_and_counted(self, form: MetricsFormat, path: Path) -> None:
        assert form.write(path, []) == 0
        assert form.count(path) == 0
        assert list(form.scan(path)) == []
        assert list(form.read(path, LOSS)) == []

    def test_many_metrics_are_found_one_by_one(self, form: MetricsFormat, path: Path) -> None:
        names = [MetricKey(f"layer.{i:03d}", None, None) for i in range(40)]
        assert form.write(path, [block([i, -i], name) for i, name in enumerate(names)]) == 80
        assert form.count(path) == 80
        assert [b.value.tolist() for b in form.read(path, names[27])] == [[27, -27]]

    def test_a_quarter_of_a_million_values_pass_in_bounded_memory(
        self, form: MetricsFormat, path: Path
    ) -> None:
        def blocks() -> Any:
            for part in range(25):
                yield block(np.arange(10_000) + part * 10_000.0, writer=(part, 1))
            yield block([1.0], MetricKey("z", "Training", None))

        form.write(path, [block([1])])  # what the library loads for ever does not count
        tracemalloc.start()
        try:
            assert form.write(path.with_name(f"large{form.suffix}"), blocks()) == 250_001
            expected = 0
            for found in form.scan(path.with_name(f"large{form.suffix}")):
                if found.name == LOSS:
                    assert found.value[0] == expected
                    expected += len(found.value)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert expected == 250_000
        assert form.count(path.with_name(f"large{form.suffix}")) == 250_001
        # All at once they would be 250 000 rows of six columns: 12 MB, and as text 20 MB.
        assert peak < 40e6

    def test_what_is_damaged_is_an_error_of_ours(self, form: MetricsFormat, path: Path) -> None:
        form.write(path, [block(np.random.default_rng(1).random(5000))])
        self.damage(path)
        with pytest.raises(StorageError, match="Training"):
            form.count(path)

    def damage(self, path: Path) -> None:
        """Lose a part of the file."""
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    def test_its_name_tells_the_form(self, form: MetricsFormat, path: Path) -> None:
        form.write(path, [block([1, 2])])
        found = format_of(path.name)
        assert type_of(path.name) is self.kind
        assert found is not None
        assert found.media_type == form.media_type
        assert rows(found.scan(path)) == rows([block([1, 2])])

    def test_another_tool_reads_it(
        self, form: MetricsFormat, path: Path, options: dict[str, Any]
    ) -> None:
        steps, epochs = [0, ABSENT, 2, 3], [ABSENT, 1, 1, 1]
        written = block([0.1, np.nan, np.inf, -np.inf], step=steps, epoch=epochs, writer=(3, 1))
        form.write(path, [written, block([7], MetricKey("other", "Training", "gpu"))])
        assert self.read_elsewhere(path, "loss", **options) == [
            Row(0, None, 0.1, TIME, 3),
            Row(None, 1, None, TIME + 1, 3),
            Row(2, 1, np.inf, TIME + 2, 3),
            Row(3, 1, -np.inf, TIME + 3, 3),
        ]

    def test_a_run_that_is_continued_keeps_what_it_had(
        self, form: MetricsFormat, tmp_path: Path, options: dict[str, Any]
    ) -> None:
        settings = RunSettings(
            experiment_name="digits",
            provenance_save_dir=tmp_path,
            metrics_file_type=self.kind,
            csv_separator=options.get("separator", ","),
            use_compressor=options.get("compressor"),
            use_run_id=0,
        )
        for first in (0, 3):
            with _opened(settings) as run:
                for step in range(first, first + 3):
                    run.record_metric("loss", step / 10, "Training", step, time=step * 1000)
                run.record_metric("power", 5.5, None, source="nvml", unit="W", time=7000)
                run.snapshot()
        folder = tmp_path / "digits_0"
        assert sorted(p.name for p in (folder / "metrics").iterdir()) == [
            f"Training{form.suffix}",
            f"~run{form.suffix}",
        ]
        assert list((folder / "journal").glob("*.points")) == []
        table = read_series(RunLayout(folder), LOSS)
        assert table["step"].to_pylist() == [0, 1, 2, 3, 4, 5]
        assert table["value"].to_pylist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
        frame = get_metric(folder, "loss", "Training")
        assert frame["step"].tolist() == [0, 1, 2, 3, 4, 5]
        assert frame["value"].tolist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
        assert frame["epoch"].isna().all()
        assert frame["timestamp"].astype("int64").tolist() == [0, 1, 2, 3, 4, 5]
        assert frame["rank"].tolist() == [0] * 6
        (power,) = {b.unit for b in form.scan(folder / "metrics" / f"~run{form.suffix}")}
        assert power == "W"


def _opened(settings: RunSettings) -> Run:
    run = open_run(settings)
    assert isinstance(run, Run)
    return run
