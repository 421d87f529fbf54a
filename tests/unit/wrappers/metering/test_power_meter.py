from __future__ import annotations

import asyncio
import inspect
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from prov4ml import PowerMeter
from provml_lightning.errors import ConfigurationError, RecordDroppedWarning, SamplerDroppedWarning
from provml_lightning.samplers.sampler import Sampler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    Rows = Callable[..., list[dict[str, str]]]

TOLD = {
    "package": "sklearn",
    "algorithm": "forest",
    "step": "training",
    "data_type": "tabular",
    "data_shape": "(3, 4)",
    "algorithm_params": "n=3, depth=2",
    "comments": 'a "quoted", comment',
}
WRITTEN = {
    "Package": "sklearn",
    "Algorithm": "forest",
    "Step": "training",
    "Data type": "tabular",
    "Data shape": "(3, 4)",
    "Algorithm's parameters": "n=3, depth=2",
    "Comment": 'a "quoted", comment',
}


@pytest.fixture
def meter() -> PowerMeter:
    return PowerMeter(project_name="MNIST", is_online=False, location="FR")


def texts(row: dict[str, str]) -> dict[str, str]:
    """Return what is the same in every measure of one thing."""
    moving = ("Time", "Datetime", "Energy", "energy", "CO2", "Started", "Duration")
    return {name: cell for name, cell in row.items() if not any(word in name for word in moving)}


def test_the_three_ways_give_the_same_row(meter: PowerMeter, rows: Rows) -> None:
    # CarbonAI's block forgot the step that its decorator kept.
    with meter(**TOLD):
        pass

    @meter.measure_power(**TOLD)
    def work() -> int:
        return 7

    assert work() == 7
    meter.start_measure(**TOLD)
    meter.stop_measure()

    block, decorated, started = rows()
    assert texts(block) == texts(decorated) == texts(started)
    assert {name: block[name] for name in WRITTEN} == WRITTEN


@pytest.mark.parametrize("step", ["inference", "training", "other", "test", "run", "preprocessing"])
def test_a_known_step_has_one_spelling(meter: PowerMeter, rows: Rows, step: str) -> None:
    with meter("p", "a", step=f" {step.upper()}"):
        pass
    assert rows()[0]["Step"] == step


def test_another_step_stays_as_typed_and_none_is_other(meter: PowerMeter, rows: Rows) -> None:
    with meter("p", "a", "Fine-Tuning"):
        pass
    with meter("p", "a"):
        pass
    assert [row["Step"] for row in rows()] == ["Fine-Tuning", "other"]


@pytest.mark.parametrize("way", ["block", "decorator", "start"])
@pytest.mark.parametrize("names", [("", "forest"), ("sklearn", " ")])
def test_an_empty_name_is_refused_before_anything_runs(
    meter: PowerMeter, way: str, names: tuple[str, str]
) -> None:
    call = {"block": meter, "decorator": meter.measure_power, "start": meter.start_measure}[way]
    with pytest.raises(ConfigurationError, match="must say what is measured"):
        call(*names)


class Special(BaseException):
    pass


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), Special()])
def test_the_body_s_own_exception_comes_out(
    meter: PowerMeter, rows: Rows, error: BaseException
) -> None:
    @meter.measure_power("p", "decorated")
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as block, meter("p", "block"):
        raise error
    with pytest.raises(type(error)) as decorated:
        fail()

    assert block.value is error
    assert decorated.value is error
    assert error.__cause__ is None
    assert error.__context__ is None
    assert [row["Algorithm"] for row in rows()] == ["block", "decorated"]
    assert all(row["Error"].endswith(type(error).__name__) for row in rows())


def test_nested_measures_keep_their_own_names_and_times(meter: PowerMeter, rows: Rows) -> None:
    # CarbonAI's both said "inner".
    with meter("p", "outer", "training"):
        time.sleep(0.03)
        with meter("p", "inner", "test"):
            time.sleep(0.02)
    inner, outer = rows()
    assert (inner["Algorithm"], inner["Step"]) == ("inner", "test")
    assert (outer["Algorithm"], outer["Step"]) == ("outer", "training")
    assert float(outer["Duration (sec)"]) >= float(inner["Duration (sec)"]) + 0.03
    assert float(outer["Package energy (J)"]) >= float(inner["Package energy (J)"]) + 3


def test_measures_started_one_in_another_are_stopped_innermost_first(
    meter: PowerMeter, rows: Rows
) -> None:
    meter.start_measure("p", "outer")
    meter.start_measure("p", "inner")
    meter.stop_measure()
    meter.stop_measure()
    assert [row["Algorithm"] for row in rows()] == ["inner", "outer"]


def test_a_thread_stops_what_it_started(meter: PowerMeter, rows: Rows) -> None:
    both = threading.Barrier(2, timeout=30)

    def work(name: str) -> None:
        meter.start_measure("p", name, comments=name)
        both.wait()
        meter.stop_measure()
        with meter("p", f"block {name}", comments=name):
            both.wait()

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(row["Algorithm"] for row in rows()) == ["block one", "block two", "one", "two"]
    assert all(row["Algorithm"].endswith(row["Comment"]) for row in rows())


def test_a_block_that_threads_share_gives_each_its_own_measure(
    meter: PowerMeter, rows: Rows
) -> None:
    block = meter("p", "shared")
    first_is_in, second_is_in = threading.Event(), threading.Event()

    def first() -> None:
        with suppress(ValueError), block:
            first_is_in.set()
            second_is_in.wait()
            raise ValueError

    thread = threading.Thread(target=first)
    thread.start()
    first_is_in.wait()
    with block:
        second_is_in.set()
        thread.join()
    failed, other = rows()
    assert [failed["Error"], other["Error"]] == ["ValueError", ""]
    assert failed["Started (UTC)"] < other["Started (UTC)"]


def test_a_block_that_tasks_share_gives_each_its_own_measure(meter: PowerMeter, rows: Rows) -> None:
    block = meter("p", "shared")

    async def first(second_is_in: asyncio.Event) -> None:
        with suppress(ValueError):
            async with block:
                await second_is_in.wait()
                raise ValueError

    async def both() -> None:
        second_is_in = asyncio.Event()
        task = asyncio.create_task(first(second_is_in))
        await asyncio.sleep(0)
        async with block:
            second_is_in.set()
            await task

    asyncio.run(both())
    failed, other = rows()
    assert [failed["Error"], other["Error"]] == ["ValueError", ""]
    assert failed["Started (UTC)"] < other["Started (UTC)"]


def test_a_named_measure_is_stopped_whatever_was_started_last(
    meter: PowerMeter, rows: Rows
) -> None:
    first = meter.start_measure("p", "first")
    meter.start_measure("p", "second")
    meter.stop_measure(first)
    meter.stop_measure()
    assert [row["Algorithm"] for row in rows()] == ["first", "second"]


def test_a_stop_without_a_start_is_a_warning(meter: PowerMeter) -> None:
    with pytest.warns(RecordDroppedWarning, match="no measure was started"):
        meter.stop_measure()


def test_a_measure_that_is_never_stopped_ends_with_the_program(tmp_path: Path, rows: Rows) -> None:
    program = (
        "import prov4ml\n"
        "m = prov4ml.PowerMeter(location='FR', is_online=False)\n"
        "m.start_measure('p', 'endless')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path, timeout=100)
    assert [row["Algorithm"] for row in rows()] == ["endless"]


def test_a_coroutine_is_measured_from_its_first_step_to_its_last(
    meter: PowerMeter, rows: Rows
) -> None:
    # CarbonAI measured the making of the coroutine: about 0 s.
    @meter.measure_power("p", "coroutine")
    async def work(seconds: float) -> str:
        """Sleep."""
        await asyncio.sleep(seconds)
        async with meter("p", "async block"):
            await asyncio.sleep(seconds)
        return "done"

    async def both() -> list[str]:
        return await asyncio.gather(work(0.05), work(0.05))

    assert inspect.iscoroutinefunction(work)
    assert asyncio.run(both()) == ["done", "done"]
    times = {name: [] for name in ("coroutine", "async block")}
    for row in rows():
        times[row["Algorithm"]].append(float(row["Duration (sec)"]))
    assert all(0.1 <= seconds < 5 for seconds in times["coroutine"])
    assert all(0.05 <= seconds < 5 for seconds in times["async block"])
    assert [len(found) for found in times.values()] == [2, 2]


def test_generators_are_measured_until_they_end(meter: PowerMeter, rows: Rows) -> None:
    @meter.measure_power("p", "generator")
    def steps() -> Iterator[int]:
        yield 1
        time.sleep(0.03)
        yield 2

    @meter.measure_power("p", "async generator")
    async def async_steps() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(0.03)
        yield 2

    async def collect() -> list[int]:
        return [step async for step in async_steps()]

    assert list(steps()) == [1, 2]
    assert asyncio.run(collect()) == [1, 2]
    assert [row["Algorithm"] for row in rows()] == ["generator", "async generator"]
    assert all(float(row["Duration (sec)"]) >= 0.03 for row in rows())


def test_a_decorated_function_stays_what_it_was(meter: PowerMeter, rows: Rows) -> None:
    class Model:
        @meter.measure_power("p", "method")
        def fit(self, rows: int, *, lr: float = 0.1) -> tuple[Any, int, float]:
            """Fit the model."""
            return self, rows, lr

        @meter.measure_power("p", "static")
        @staticmethod
        def make() -> str:
            return "made"

        @meter.measure_power("p", "class")
        @classmethod
        def name(cls) -> str:
            return cls.__name__

    model = Model()
    assert model.fit(3, lr=0.2) == (model, 3, 0.2)
    assert Model.make() == model.make() == "made"
    assert Model.name() == "Model"
    assert (Model.fit.__name__, Model.fit.__doc__) == ("fit", "Fit the model.")
    assert str(inspect.signature(Model.fit)).startswith("(self, rows")
    assert [row["Algorithm"] for row in rows()] == ["method", "static", "static", "class"]
    with pytest.raises(ConfigurationError, match="cannot be called"):
        meter.measure_power("p", "a")(3)  # type: ignore[arg-type]


def test_no_thread_is_left_when_the_last_measure_ends(meter: PowerMeter) -> None:
    def samplers() -> int:
        return [thread.name for thread in threading.enumerate()].count("provml-sampler")

    with meter("p", "outer"):
        with meter("p", "inner"):
            assert samplers() == 1
        assert samplers() == 1
    assert samplers() == 0


def test_a_sensor_that_cannot_be_opened_is_a_warning_and_empty_cells(
    meter: PowerMeter, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVML_CPU_TDP_W", "many")
    ran = []
    with pytest.warns(SamplerDroppedWarning, match="nothing is measured.*many"), meter("p", "a"):
        ran.append(1)
    (row,) = rows()
    assert ran == [1]
    assert row["Cumulative Package Energy (mWh)"] == row["CO2 emitted (gCO2e)"] == ""
    assert float(row["Duration (sec)"]) > 0


def test_a_sensor_that_fails_at_the_end_is_a_warning(
    meter: PowerMeter, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Sampler) -> None:
        raise RuntimeError("GPU is lost")

    error = ValueError("mine")

    @meter.measure_power("p", "a")
    def work() -> None:
        monkeypatch.setattr(Sampler, "poll", fail)
        raise error

    with (
        pytest.warns(RecordDroppedWarning, match="GPU is lost"),
        pytest.raises(ValueError, match="mine") as raised,
    ):
        work()
    monkeypatch.undo()
    assert raised.value is error
    assert rows()[0]["Package energy (J)"] == ""
    assert "provml-sampler" not in {thread.name for thread in threading.enumerate()}


FORKING = """
import os, sys, time
import prov4ml
meter = prov4ml.PowerMeter(location="FR", is_online=False)
with meter("p", "of the parent"):
    if os.fork() == 0:
        with meter("p", "of the child"):
            time.sleep(0.05)
        sys.exit(0)  # which leaves the parent's block too
    os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_born_by_fork_tells_of_its_own_measures_alone(tmp_path: Path, rows: Rows) -> None:
    subprocess.run([sys.executable, "-c", FORKING], check=True, cwd=tmp_path, timeout=100)
    told = [(row["Algorithm"], float(row["Package energy (J)"])) for row in rows()]
    assert [name for name, _ in told] == ["of the child", "of the parent"]
    assert told[0][1] >= 5  # 100 W for 0.05 s


def test_a_meter_pickles_without_what_is_under_way(meter: PowerMeter, rows: Rows) -> None:
    meter.start_measure("p", "here")
    other = pickle.loads(pickle.dumps(meter))  # noqa: S301  our own
    with other("p", "there"):
        pass
    with pytest.warns(RecordDroppedWarning, match="no measure was started"):
        other.stop_measure()
    meter.stop_measure()
    assert [row["Algorithm"] for row in rows()] == ["there", "here"]
    assert texts(rows()[0]) == {**texts(rows()[1]), "Algorithm": "there"}


def test_a_config_file_holds_the_constructor_s_arguments(tmp_path: Path, rows: Rows) -> None:
    config = {
        "project_name": "Project X",
        "program_name": "Program X",
        "client_name": "Client X",
        "user_name": "ann",
        "get_country": False,
        "is_online": False,
        "location": "FR",
        "filepath": "",
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    meter = PowerMeter.from_config("config.json")
    with meter("p", "a"):
        pass
    (row,) = rows()
    named = ("Project name", "Program name", "Client name", "User ID", "ISO")
    assert [row[name] for name in named] == ["Project X", "Program X", "Client X", "ann", "FR"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"loction": "FR"}', "'loction' is no argument of PowerMeter; did you mean location"),
        ('{"company_name": "X"}', "'company_name' is no argument"),
        ("{", "cannot be read as JSON"),
        ("[1]", "must hold an object"),
    ],
)
def test_a_config_file_that_cannot_work_is_refused(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ConfigurationError, match=told):
        PowerMeter.from_config(tmp_path / "config.json")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        PowerMeter.from_config(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ({"project_name": 3}, "project_name=3 must be a text"),
        ({"output_format": "json"}, "output_format='json' must be 'csv' or 'excel'"),
        ({"output_format": ["csv"]}, "must be 'csv' or 'excel'"),
        # What a config file may say for false, and Python takes for true: it asks the network.
        ({"get_country": "false"}, "get_country='false' must be True or False"),
        ({"is_online": "false"}, "is_online='false' must be True or False"),
        ({"is_online": None}, "is_online=None must be True or False"),
        ({"filepath": 3}, "filepath=3 must be a path"),
        ({"filepath": "x.csv", "output_format": "excel"}, "end in .xlsx"),
        ({"api_endpoint": "example.org"}, "api_endpoint='example.org' must be an address"),
        ({"api_endpoint": "file:///etc/passwd"}, "must be an address"),
        ({"pue": 0.5}, "pue=0.5 must be a number from 1 up"),
    ],
)
def test_an_argument_that_cannot_work_is_refused_at_the_start(
    argument: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        PowerMeter(**{"location": "FR", "is_online": False, **argument})


def test_what_was_not_told_is_the_folder_the_user_and_dashes(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "bob")
    with PowerMeter(location="FR", is_online=False)("p", "a"):
        pass
    (row,) = rows()
    assert row["Project name"] == tmp_path.name
    assert (row["User ID"], row["Program name"], row["Client name"]) == ("bob", "--", "--")
    assert row["Platform"] == sys.platform


def test_a_secret_in_what_is_told_is_masked(meter: PowerMeter, rows: Rows) -> None:
    with meter("p", "a", algorithm_params="lr=0.1, api_key=abc123", comments="password: hunter2"):
        pass
    (row,) = rows()
    assert row["Algorithm's parameters"] == "lr=0.1, api_key=***"
    assert row["Comment"] == "password: ***"


def test_a_folder_of_another_tool_is_told_and_not_read(rows: Rows, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="has no power zones"):
        meter = PowerMeter(
            location="FR",
            is_online=False,
            cpu_power_log_path=str(tmp_path / "PowerLog3.0"),
            powerlog_save_path="C:\\logs",
        )
    with meter("p", "a"):
        pass
    (row,) = rows()
    assert row["CPU energy source"] == "model.tdp"
    assert row["PowerLog folder"] == "C:\\logs"


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such timer")
def test_a_signal_s_handler_may_measure_in_the_midst_of_a_measure(
    meter: PowerMeter, rows: Rows
) -> None:
    handled = []

    def handle(*_: object) -> None:
        with meter("p", "handler"):
            handled.append(1)

    before = signal.signal(signal.SIGVTALRM, handle)
    try:
        for number in range(20):
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0001 * (number + 1))
            with meter("p", "interrupted"):
                pass
            while len(handled) <= number:
                pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    with meter("p", "last"):  # writes what waited for a file that the interrupted measure held
        pass
    told = [row["Algorithm"] for row in rows()]
    assert (told.count("interrupted"), told.count("handler")) == (20, 20)
    assert "provml-sampler" not in {thread.name for thread in threading.enumerate()}
