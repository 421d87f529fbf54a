"""A meter beside a run, several processes, and CarbonAI's own document."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import prov4ml
from provml_lightning.wrappers.metering import measure as measuring
from tests.conformance.prov.checker import complaints
from tests.conformance.prov.reading import parse

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def rows(name: str = "emissions.csv") -> list[dict[str, str]]:
    with Path(name).open(newline="") as file:
        return list(csv.DictReader(file))


def stated(run: str) -> dict[str, Any]:
    content = Path(f"prov/{run}/prov_{run}.json").read_bytes()
    assert complaints(parse(content)) == []
    document: dict[str, Any] = json.loads(content)
    return document


def measures(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for name, one in document["activity"].items() if name.startswith("measure/")]


def fail_after_work() -> None:
    sum(range(3_000_000))  # longer than the hundredths of a second that the kernel counts in
    raise ValueError("mine")


def test_a_measure_in_a_run_is_an_activity_with_the_row_s_numbers() -> None:
    meter = prov4ml.PowerMeter(location="FR", is_online=False)
    with (
        prov4ml.start_run("digits"),
        pytest.raises(ValueError, match="mine"),
        meter("sklearn", "forest", "training", "tabular", (3, 4), "n=3", "third try"),
    ):
        fail_after_work()
    (row,) = rows()
    document = stated("digits_0")
    (activity,) = measures(document)
    assert row["Run ID"] == "digits_0"
    for name, column in {
        "cpu_energy": "Package energy (J)",
        "ram_energy": "DRAM energy (J)",
        "process_cpu_energy": "Process CPU energy (J)",
        "process_ram_energy": "Process DRAM energy (J)",
        "emissions": "CO2 emitted (gCO2e)",
        "seconds": "Duration (sec)",
        "pue": "PUE",
        "carbon_intensity": "Carbon intensity (gCO2e/kWh)",
    }.items():
        assert number(activity[f"provml:{name}"]) == float(row[column])
    assert activity["provml:cpu_energy_source"] == row["CPU energy source"]
    assert activity["provml:error_type"] == row["Error"] == "ValueError"
    assert activity["provml:comments"] == "third try"
    roles = {
        one["prov:role"]: document["entity"][one["prov:entity"]]
        for one in document["used"].values()
        if one["prov:activity"] == "measure/~~/sklearn/forest"
    }
    assert roles["algorithm"]["provml:algorithm_params"] == "n=3"
    assert roles["input"]["provml:data_shape"] == "(3, 4)"


def number(value: Any) -> float:
    return float(value["$"] if isinstance(value, dict) else value)


def test_measures_belong_to_the_run_in_which_they_began() -> None:
    meter = prov4ml.PowerMeter(location="FR", is_online=False)
    with meter("p", "before any"):
        pass
    with prov4ml.start_run("outer"):
        with meter("p", "of the outer"), prov4ml.start_run("inner"):
            pass
        measure = meter.start_measure("p", "ended late")
    meter.stop_measure(measure)
    told = {row["Algorithm"]: row["Run ID"] for row in rows()}
    assert told == {"before any": "", "of the outer": "outer_0", "ended late": ""}
    assert [one["prov:label"] for one in measures(stated("outer_0"))] == ["p: of the outer"]
    assert measures(stated("inner_0")) == []


def test_measures_beyond_the_first_thousand_are_in_the_file_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measuring, "MOST_RECORDED", 3)
    meter = prov4ml.PowerMeter(location="FR", is_online=False)
    with prov4ml.start_run("digits"):
        for number_ in range(6):
            with meter("p", f"{number_}"):
                pass
    assert len(rows()) == 6
    document = stated("digits_0")
    assert [one["prov:label"] for one in measures(document)] == ["p: 0", "p: 1", "p: 2"]
    assert "measures after the first 3 are in their meter's file alone" in json.dumps(document)


def test_a_run_with_measures_is_drawn_and_crated() -> None:
    meter = prov4ml.PowerMeter(location="FR", is_online=False)
    prov4ml.start_run("digits")
    with meter("sklearn", "forest"):
        pass
    prov4ml.end_run(create_graph=True, crate_ro_crate=True)
    (dot,) = Path("prov/digits_0").glob("*.dot")
    assert "sklearn: forest" in dot.read_text("utf-8")


RANK = """
import sys, prov4ml
meter = prov4ml.PowerMeter(location="FR", is_online=False)
with meter("p", "a"):
    sum(range(3_000_000))
"""


def start(program: str, *arguments: str, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_ranks_of_a_machine_write_one_file_and_tell_of_it_once() -> None:
    ranks = [
        start(RANK, RANK=f"{n}", LOCAL_RANK=f"{n}", WORLD_SIZE="2", PROVML_CPU_TDP_W="100")
        for n in (0, 1)
    ]
    for rank in ranks:
        _, errors = rank.communicate(timeout=100)
        assert rank.returncode == 0, errors
    found = {row["Rank"]: row for row in rows()}
    assert set(found) == {"0", "1"}
    assert found["0"]["Package energy (J)"] != ""
    assert found["1"]["Package energy (J)"] == ""
    assert all(float(row["Process CPU energy (J)"]) > 0 for row in found.values())


def test_signal_handlers_and_output_are_as_they_were() -> None:
    program = (
        "import signal\n"
        "before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]\n"
        "import prov4ml\n"
        "meter = prov4ml.PowerMeter(location='FR', is_online=False)\n"
        "with meter('p', 'a'): pass\n"
        "assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before\n"
    )
    process = start(program)
    output, errors = process.communicate(timeout=100)
    assert (process.returncode, output, errors) == (0, "", "")


def test_a_program_whose_measure_never_ends_exits_all_the_same() -> None:
    process = start(
        "import prov4ml, time\n"
        "prov4ml.PowerMeter(location='FR', is_online=False)('p', 'a').__enter__()\n"
        "print(time.time(), flush=True)\n"
    )
    output, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    assert time.time() - float(output) < 10


# As the document on carbonai.PowerMeter prints them; the second breaks its text in the middle.
EXAMPLES = """
>>> power_meter = PowerMeter(project_name="MNIST classifier",
...     is_online=False, location="FR")

>>> power_meter = PowerMeter(project_name="Test",
...     api_endpoint="https://ngji0jx9dc.execute-
api.eu-west-3.amazonaws.com/post_new_item")
"""


def printed() -> Sequence[str]:
    """Return the document's two examples as programs."""
    found = re.findall(r"^>>> (.*(?:\n(?:\.\.\. |api).*)*)", EXAMPLES, re.MULTILINE)
    return [re.sub(r"\n\.\.\. +", " ", text).replace("-\napi", "-api") for text in found]


@pytest.mark.filterwarnings("ignore:location unknown")
@pytest.mark.parametrize("example", printed())
def test_an_example_of_the_document_runs_as_printed(example: str) -> None:
    names: dict[str, Any] = {"PowerMeter": prov4ml.PowerMeter}
    exec(example, names)  # noqa: S102  that is what an example is for
    meter = names["power_meter"]
    assert isinstance(meter, prov4ml.PowerMeter)
    assert [meter._ledger.whose.project] == re.findall(r'project_name="(.*?)"', example)  # noqa: SLF001
    assert len(printed()) == 2
