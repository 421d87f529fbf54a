from __future__ import annotations

import getpass
import os
import platform
import shlex
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from provml_lightning.capture import environment
from provml_lightning.capture.environment import (
    environment_facts,
    installed_packages,
    requirements_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def _raiser(error: BaseException) -> Callable[..., NoReturn]:
    def fail(*_: Any, **__: Any) -> NoReturn:
        raise error

    return fail


def test_a_process_tells_where_it_runs() -> None:
    facts = environment_facts()

    assert facts["python_version"] == platform.python_version()
    assert facts["executable"] == sys.executable
    assert facts["pid"] == os.getpid()
    assert facts["working_directory"] == str(Path.cwd())
    assert facts["cpu_count"] == os.cpu_count()
    assert {"operating_system", "release", "machine", "host_name", "user", "time_zone"} <= set(
        facts
    )


def test_no_process_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess.Popen, "__init__", _raiser(AssertionError()))

    assert environment_facts()
    assert installed_packages()


def test_a_uid_without_a_passwd_entry_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    # KeyError until Python 3.12, OSError from 3.13
    for error in (KeyError("getpwuid(): uid not found: 4711"), OSError("No username set")):
        monkeypatch.setattr(getpass, "getuser", _raiser(error))
        monkeypatch.setattr(os, "getuid", lambda: 4711, raising=False)
        assert environment_facts()["user"] == "uid-4711"


def test_a_removed_working_directory_is_absent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert "working_directory" not in environment_facts()


def test_secrets_of_the_command_line_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["python", "train.py", "--api-key", "s3cret", "--lr=0.1", "--hub_token=s3cret", "a b"]
    monkeypatch.setattr(sys, "orig_argv", command)

    assert environment_facts()["command_line"] == (
        "python train.py --api-key '***' --lr=0.1 '--hub_token=***' 'a b'"
    )


@pytest.mark.parametrize("way", ["spawn", "forkserver", "fork"])
def test_a_process_that_was_started_for_the_work_tells_the_command_that_was_typed(
    tmp_path: Path, way: str
) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        "import multiprocessing, sys\n"
        "from provml_lightning.capture.environment import environment_facts\n"
        "def work():\n"
        "    print(environment_facts()['command_line'])\n"
        "if __name__ == '__main__':\n"
        "    process = multiprocessing.get_context(sys.argv[1]).Process(target=work)\n"
        "    process.start()\n"
        "    process.join()\n"
    )
    typed = [sys.executable, str(program), way, "--lr", "0.1", "a b"]
    quiet = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # handed on as an argument
    ended = subprocess.run(typed, check=True, capture_output=True, text=True, env=quiet)
    assert ended.stdout.strip() == shlex.join(typed)


@pytest.mark.parametrize(
    "typed",
    [
        ["python", "-c", "from multiprocessing.pool import Pool; work()", "--lr", "3"],
        ["python", "train.py", "-c", "from multiprocessing.spawn import spawn_main", "-z"],
        ["python", "-W", "ignore", "train.py", "-c"],
        ["python"],
    ],
)
def test_what_only_looks_like_a_process_that_was_started_is_told_as_typed(
    monkeypatch: pytest.MonkeyPatch, typed: list[str]
) -> None:
    monkeypatch.setattr(sys, "orig_argv", typed)
    monkeypatch.setattr(environment, "parent_process", lambda: SimpleNamespace(pid=os.getpid()))
    assert environment_facts()["command_line"] == shlex.join(typed)


def test_where_the_process_that_started_it_is_gone_its_command_is_put_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=4, pipe_handle=6)"
    started = ["/bin/python", "-B", "-c", code, "--multiprocessing-fork"]
    monkeypatch.setattr(sys, "orig_argv", started)
    monkeypatch.setattr(sys, "argv", ["train.py", "--token=s3cret"])
    gone = SimpleNamespace(pid=0)  # nobody's: the kernel starts at one
    monkeypatch.setattr(environment, "parent_process", lambda: gone)
    assert environment_facts()["command_line"] == "/bin/python -B train.py '--token=***'"


def test_variables_of_the_launcher_are_told_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("MY_TOKEN", "s3cret")
    monkeypatch.delenv("WORLD_SIZE", raising=False)

    facts = environment_facts()

    assert facts["SLURM_JOB_ID"] == "77"
    assert facts["CUDA_VISIBLE_DEVICES"] == ""  # no device, which is not the same as any device
    assert "WORLD_SIZE" not in facts
    assert "s3cret" not in str(facts)


def test_only_libraries_that_are_loaded_tell_their_version(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = ModuleType("torch")
    loaded.__dict__["__version__"] = "2.13.0+cpu"
    monkeypatch.setitem(sys.modules, "torch", loaded)
    monkeypatch.delitem(sys.modules, "sklearn", raising=False)

    facts = environment_facts()

    assert facts["torch_version"] == "2.13.0+cpu"
    assert "sklearn_version" not in facts


def _distribution(folder: Path, name: str, metadata: str | None = None) -> None:
    (folder / name).mkdir(parents=True)
    if metadata is not None:
        (folder / name / "METADATA").write_text(metadata)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", ["/no/such.zip", str(tmp_path / "a"), str(tmp_path / "b")])
    return tmp_path


def test_installed_packages_are_read_from_the_names_of_folders(site: Path) -> None:
    _distribution(site / "a", "torch-2.13.0+cpu.dist-info")
    _distribution(site / "a", "typing_extensions-4.16.0.dist-info")
    _distribution(site / "a", "Zope.Interface-5.0rc1.dist-info")
    _distribution(site / "a", "my-old-name-1.0.dist-info")
    _distribution(site / "a", "legacy-1!2.0.post3-py3.11.egg-info")
    _distribution(site / "a", "built-0.1-py3.11-linux-x86_64.egg-info")
    _distribution(site / "a", "not-a-distribution")

    assert installed_packages() == [
        ("built", "0.1"),
        ("legacy", "1!2.0.post3"),
        ("my-old-name", "1.0"),
        ("torch", "2.13.0+cpu"),
        ("typing-extensions", "4.16.0"),
        ("zope-interface", "5.0rc1"),
    ]


def test_odd_folder_names_are_looked_up_in_their_metadata(site: Path) -> None:
    _distribution(
        site / "a", "odd.dist-info", "Metadata-Version: 2.1\nName: Odd\nVersion: 3\n\nName: x"
    )
    _distribution(site / "a", "~orch-1.0.dist-info")
    (site / "a" / "develop.egg-info").mkdir()
    (site / "a" / "develop.egg-info" / "PKG-INFO").write_text("Name: develop\nVersion: 0.0.1\n")
    (site / "a" / "single.egg-info").write_text("Name: single\nVersion: 7\n")

    assert installed_packages() == [("develop", "0.0.1"), ("odd", "3"), ("single", "7")]


def test_the_first_on_the_path_is_the_one_that_counts(site: Path) -> None:
    _distribution(site / "a", "thing-1.0.dist-info")
    _distribution(site / "b", "Thing-2.0.dist-info")

    assert installed_packages() == [("thing", "1.0")]


def test_three_hundred_packages_are_listed_at_once(site: Path) -> None:
    for number in range(300):
        _distribution(site / "a", f"package{number}-1.{number}.dist-info")

    started = time.process_time()
    found = installed_packages()

    assert len(found) == 300
    assert time.process_time() - started < 0.1  # measured: 2 ms


def test_requirements_are_lines_that_pip_reads() -> None:
    assert requirements_text([("a", "1"), ("torch", "2.13.0+cpu")]) == "a==1\ntorch==2.13.0+cpu\n"
    assert requirements_text([]) == ""
