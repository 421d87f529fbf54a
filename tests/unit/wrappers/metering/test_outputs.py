from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prov4ml import PowerMeter
from provml_lightning.errors import MissingExtraError, StorageWarning
from provml_lightning.wrappers.metering import tables
from provml_lightning.wrappers.metering.columns import COLUMNS
from provml_lightning.wrappers.metering.outputs import Output, output_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Rows = Callable[..., list[dict[str, str]]]

WRITING = """
import sys
from pathlib import Path
from provml_lightning.wrappers.metering.columns import COLUMNS
from provml_lightning.wrappers.metering.outputs import Output
output = Output(Path(sys.argv[1]), "csv")
for number in range(200):
    output.add({name: f'{sys.argv[2]} "{number}", {"x" * number}' for name in COLUMNS})
"""
ODD = 'a, "b"\r\nc; = é \N{SNOWMAN}'


def row(**cells: Any) -> dict[str, Any]:
    return dict.fromkeys(COLUMNS) | cells


def meter(**told: Any) -> PowerMeter:
    return PowerMeter(**{"location": "FR", "is_online": False, **told})


def test_two_processes_write_all_their_rows_whole(tmp_path: Path) -> None:
    path = tmp_path / "emissions.csv"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITING, str(path), name]) for name in ("a", "b")
    ]
    assert [writer.wait(100) for writer in writers] == [0, 0]
    with path.open(newline="") as file:
        header, *found = csv.reader(file)
    assert tuple(header) == COLUMNS
    assert len(found) == 400
    wanted = {(f'{name} "{n}", {"x" * n}',) * len(COLUMNS) for name in "ab" for n in range(200)}
    assert {tuple(cells) for cells in found} == wanted


def test_any_text_comes_back_as_it_was(tmp_path: Path) -> None:
    output = Output(tmp_path / "emissions.csv", "csv")
    output.add(row(Comment=ODD, Package="\udcff"))
    content = (tmp_path / "emissions.csv").read_bytes()
    assert content.endswith(b"\r\n")
    (_, cells) = csv.reader(io.StringIO(content.decode("utf-8"), newline=""))
    assert cells[COLUMNS.index("Comment")] == ODD
    assert cells[COLUMNS.index("Package")] == "\\udcff"


@pytest.mark.parametrize(
    "content", [b"Datetime,Country\r\n1,France\r\n", b"not a table", b"\x00\xff"]
)
def test_a_file_with_other_columns_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    # codecarbon #1304, #987: rows under the columns of an older version.
    path = tmp_path / "emissions.csv"
    path.write_bytes(content)
    output = Output(path, "csv")
    output.add(row(Package="one"))
    output.add(row(Package="two"))
    assert path.read_bytes() == content
    with (tmp_path / "emissions-2.csv").open(newline="") as file:
        assert [cells["Package"] for cells in csv.DictReader(file)] == ["one", "two"]


def test_rows_go_on_in_a_file_whose_line_ends_another_program_changed(
    tmp_path: Path, rows: Rows
) -> None:
    path = tmp_path / "emissions.csv"
    output = Output(path, "csv")
    output.add(row(Package="one"))
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n"))
    output.add(row(Package="two"))
    assert [cells["Package"] for cells in rows()] == ["one", "two"]
    assert [found.name for found in tmp_path.iterdir()] == ["emissions.csv"]


def test_an_empty_file_gets_its_header(tmp_path: Path, rows: Rows) -> None:
    (tmp_path / "emissions.csv").touch()
    Output(tmp_path / "emissions.csv", "csv").add(row(Package="one"))
    assert [cells["Package"] for cells in rows()] == ["one"]


def test_a_row_that_a_killed_process_left_half_written_costs_that_row_alone(
    tmp_path: Path, rows: Rows
) -> None:
    output = Output(tmp_path / "emissions.csv", "csv")
    output.add(row(Package="one"))
    with (tmp_path / "emissions.csv").open("ab") as file:
        file.write(b"11/30/2026 10:00:00,Fra")
    output.add(row(Package="two"))
    assert [cells["Package"] for cells in rows()][::2] == ["one", "two"]


def test_rows_that_the_disk_refuses_wait_for_the_next_measure(
    tmp_path: Path, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = meter()
    monkeypatch.setattr(os, "open", _refusing(os.open, tmp_path / "emissions.csv"))
    ran = []
    with pytest.warns(StorageWarning, match="takes no rows.*Read-only"), watched("p", "one"):
        ran.append(1)
    with watched("p", "two"):  # and no second warning
        ran.append(2)
    monkeypatch.undo()
    with watched("p", "three"):
        ran.append(3)
    assert ran == [1, 2, 3]
    assert [cells["Algorithm"] for cells in rows()] == ["one", "two", "three"]


def _refusing(opening: Any, path: Path) -> Any:
    def refuse(name: Any, *arguments: Any, **options: Any) -> Any:
        if Path(os.fsdecode(name)) == path if isinstance(name, (str, bytes, Path)) else False:
            raise OSError(30, "Read-only file system")
        return opening(name, *arguments, **options)

    return refuse


def test_rows_that_never_find_room_are_told_at_the_exit(tmp_path: Path) -> None:
    program = (
        "import sys, prov4ml\n"
        "m = prov4ml.PowerMeter(location='FR', is_online=False, filepath=sys.argv[1])\n"
        "with m('p', 'a'): print('ran')\n"
    )
    (tmp_path / "taken").touch()
    told = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "taken" / "emissions.csv")],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=100,
    )
    assert told.stdout == "ran\n"
    assert "takes no rows" in told.stderr
    assert "1 rows of" in told.stderr


def test_a_short_write_is_taken_back(
    tmp_path: Path, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = Output(tmp_path / "emissions.csv", "csv")
    output.add(row(Package="one"))
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[:20]))
    with pytest.warns(StorageWarning, match="No space left"):
        output.add(row(Package="two"))
    monkeypatch.undo()
    output.add(row(Package="three"))
    assert [cells["Package"] for cells in rows()] == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("filepath", "form", "name"),
    [
        (None, "csv", "emissions.csv"),
        ("", "csv", "emissions.csv"),
        (".", "excel", "emissions.xlsx"),
        (Path("logs"), "csv", "logs"),
        ("logs/", "csv", "logs/emissions.csv"),
        ("deep/er/mine.csv", "csv", "deep/er/mine.csv"),
        ("mine.xlsx", "csv", "mine.xlsx"),
        ("mine", "csv", "mine"),
    ],
)
def test_the_path_says_where_the_rows_go(
    tmp_path: Path, filepath: Any, form: str, name: str
) -> None:
    assert output_of(filepath, form).path == tmp_path / name


def test_the_rows_stay_in_one_file_when_the_working_folder_changes(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = meter(filepath="logs/mine.csv")
    with watched("p", "one"):
        pass
    monkeypatch.chdir("/")
    with watched("p", "two"):
        pass
    assert [cells["Algorithm"] for cells in rows("logs/mine.csv")] == ["one", "two"]


def test_a_workbook_gets_row_after_row(tmp_path: Path) -> None:
    # CarbonAI wrote a CSV file here, and its second row failed without a word.
    openpyxl = pytest.importorskip("openpyxl")
    watched = meter(output_format="excel")
    for name in ("one", "two", "three"):
        with watched("p", name, comments="=1+1", data_shape="\x07"):
            pass
    assert not (tmp_path / "emissions.csv").exists()
    sheet = openpyxl.load_workbook(tmp_path / "emissions.xlsx").worksheets[0]
    header, *found = sheet.iter_rows(values_only=True)
    assert header == COLUMNS
    assert [cells[COLUMNS.index("Algorithm")] for cells in found] == ["one", "two", "three"]
    comment = sheet.cell(2, 1 + COLUMNS.index("Comment"))
    assert (comment.value, comment.data_type) == ("=1+1", "s")
    assert sheet.cell(2, 1 + COLUMNS.index("Data shape")).value == "\N{REPLACEMENT CHARACTER}"
    assert isinstance(found[0][COLUMNS.index("Package energy (J)")], float)
    assert found[0][COLUMNS.index("Cumulative GPU Energy (mWh)")] is None
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("content", [b"", b"no workbook"])
def test_a_workbook_that_is_not_ours_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("openpyxl")
    (tmp_path / "emissions.xlsx").write_bytes(content)
    with meter(output_format="excel")("p", "a"):
        pass
    assert (tmp_path / "emissions.xlsx").read_bytes() == content
    assert (tmp_path / "emissions-2.xlsx").exists()


def test_excel_without_openpyxl_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"openpyxl is needed.*provml-lightning\[excel\]"):
        meter(output_format="excel")


@pytest.mark.skipif(os.name != "posix", reason="this system has no such locks")
def test_a_file_that_another_process_holds_is_waited_for_and_no_longer(
    tmp_path: Path, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr(tables, "held", lambda file: _HELD(file, longest=0.05))
    path = tmp_path / "emissions.csv"
    with path.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        output = Output(path, "csv")
        with pytest.warns(StorageWarning, match="another process holds the file"):
            output.add(row(Package="one"))
    output.add(row(Package="two"))
    assert [cells["Package"] for cells in rows()] == ["one", "two"]


_HELD = tables.held
