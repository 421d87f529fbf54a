from __future__ import annotations

import os
import runpy
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from types import ModuleType

import pytest

from provml_lightning.capture import source
from provml_lightning.capture.source import (
    code_place,
    git_diff,
    git_dirty,
    git_facts,
    git_head,
    project_sources,
)

AUTHOR = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *AUTHOR, *arguments],  # noqa: S607
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    return tmp_path


@pytest.fixture
def repository(outside: Path) -> Path:
    folder = outside / "repo ä"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "main.py").write_text("x = 1\n")
    _git(folder, "init", "-q", "-b", "trunk")
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "first")
    return folder


def test_a_repository_tells_its_state(repository: Path) -> None:
    commit = _git(repository, "rev-parse", "HEAD")

    assert git_facts(repository / "pkg" / "main.py") == {
        "root": str(repository),
        "commit": commit,
        "branch": "trunk",
        "describe": commit[:7],
        "dirty": False,
    }
    assert git_diff(repository / "pkg", max_bytes=1000) == b""


def test_a_changed_file_makes_it_dirty_and_a_new_one_does_not(repository: Path) -> None:
    (repository / "prov").mkdir()
    (repository / "prov" / "run.json").write_text("{}")
    assert git_facts(repository) is not None
    assert (git_facts(repository) or {})["dirty"] is False

    (repository / "pkg" / "main.py").write_text("x = 2\n")

    assert (git_facts(repository) or {})["dirty"] is True
    patch = git_diff(repository / "pkg", max_bytes=1000) or b""
    assert patch.startswith(b"diff --git a/pkg/main.py b/pkg/main.py\n")
    assert patch.endswith(b"-x = 1\n+x = 2\n")


def test_a_long_patch_is_cut_at_a_line_and_says_so(repository: Path) -> None:
    (repository / "pkg" / "main.py").write_text("".join(f"x = {n}\n" for n in range(100_000)))

    patch = git_diff(repository, max_bytes=500) or b""

    *lines, last, _ = patch.split(b"\n")
    assert last == b"# cut: the patch is longer than 500 bytes"
    assert lines[-1].startswith(b"+x = ")
    assert len(patch) < 550


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://bob:s3cret@example.org/a.git", "https://***@example.org/a.git"),
        ("https://bob:s3@cret@example.org/a.git", "https://***@example.org/a.git"),
        ("https://s3cret@example.org/a.git", "https://***@example.org/a.git"),
        ("git@example.org:a/b.git", "git@example.org:a/b.git"),
    ],
)
def test_credentials_of_the_remote_are_masked(repository: Path, url: str, shown: str) -> None:
    _git(repository, "remote", "add", "backup", "/elsewhere")
    _git(repository, "remote", "add", "origin", url)

    assert (git_facts(repository) or {})["remote"] == shown


def test_without_origin_the_first_remote_is_told(repository: Path) -> None:
    _git(repository, "remote", "add", "upstream", "/elsewhere")

    assert (git_facts(repository) or {})["remote"] == "/elsewhere"


def test_a_detached_head_has_no_branch_and_a_tag_describes_it(repository: Path) -> None:
    _git(repository, "tag", "v1")
    _git(repository, "checkout", "-q", "--detach")

    facts = git_facts(repository) or {}

    assert "branch" not in facts
    assert facts["describe"] == "v1"


def test_a_repository_without_a_commit_has_a_branch_alone(outside: Path) -> None:
    _git(outside, "init", "-q", "-b", "trunk")

    assert git_facts(outside) == {"root": str(outside), "branch": "trunk", "dirty": False}
    assert git_diff(outside, max_bytes=1000) is None


def test_no_repository_is_none(outside: Path) -> None:
    assert git_facts(outside) is None
    assert git_diff(outside, max_bytes=1000) is None
    assert git_facts(outside / "missing" / "main.py") is None


def test_without_git_there_is_none(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    assert git_facts(repository) is None
    assert git_diff(repository, max_bytes=1000) is None


def test_variables_that_point_to_another_repository_are_ignored(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_WORK_TREE", "/nowhere")

    assert (git_facts(repository) or {})["branch"] == "trunk"


def test_programs_that_the_repository_names_do_not_run(repository: Path) -> None:
    planted = repository / "planted.sh"
    planted.write_text(f'#!/bin/sh\ntouch "{repository.parent}/ran"\n')
    planted.chmod(0o755)
    (repository / ".gitattributes").write_text("*.py diff=planted\n")
    for key in ("core.fsmonitor", "diff.external", "diff.planted.textconv", "core.pager"):
        _git(repository, "config", key, f"'{planted}'")
    (repository / "pkg" / "main.py").write_text("x = 2\n")

    assert (git_facts(repository) or {})["dirty"] is True
    assert b"+x = 2" in (git_diff(repository, max_bytes=1000) or b"")
    assert not (repository.parent / "ran").exists()


def test_the_index_is_not_written(repository: Path) -> None:
    index = repository / ".git" / "index"
    os.utime(repository / "pkg" / "main.py", (1, 1))  # stale, so that git would refresh it
    before = index.read_bytes()

    assert (git_facts(repository) or {})["dirty"] is False
    assert git_diff(repository, max_bytes=1000) == b""
    assert index.read_bytes() == before


def test_a_git_that_hangs_is_ended_with_what_it_started(
    outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (outside / "git").write_text("#!/bin/sh\nsleep 60\n")
    (outside / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{outside}:{os.environ['PATH']}")
    monkeypatch.setattr(source, "_TIMEOUT", 0.2)

    started = time.monotonic()

    assert git_facts(outside) is None
    assert time.monotonic() - started < 10


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder whose modules are imported, with others that look like them."""
    folder = tmp_path / "project"
    files = {
        "main.py": "",
        "model.py": "",
        "pkg/__init__.py": "",
        "pkg/layers.py": "",
        "not_imported.py": "",
        "venv/pyvenv.cfg": "",
        "venv/mine.py": "",
        "lib/python3.11/site-packages/theirs.py": "",
        "../sibling.py": "",
        "../project-2/other.py": "",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "linked.py").symlink_to("../sibling.py")
    for name in files.keys() - {"main.py", "not_imported.py", "venv/pyvenv.cfg"} | {"linked.py"}:
        module = ModuleType(name)
        module.__file__ = str(folder / name)
        monkeypatch.setitem(sys.modules, f"planted.{name}", module)
    return folder


def test_sources_are_the_imported_files_of_the_project(project: Path) -> None:
    assert project_sources(project / "main.py") == [
        project / "main.py",
        project / "model.py",
        project / "pkg" / "__init__.py",
        project / "pkg" / "layers.py",
    ]


def test_a_script_named_relative_to_its_own_folder_takes_nothing_else(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)

    assert len(project_sources(Path("main.py"))) == 4


def test_a_folder_above_the_installation_takes_no_library() -> None:
    top = Path(sys.prefix).parent
    sources = project_sources(top / "main.py")

    assert not [file for file in sources if "site-packages" in file.parts]
    assert Path(os.__file__).resolve() not in project_sources(Path("/main.py"))


def test_an_installed_program_has_no_sources() -> None:
    assert project_sources(Path(pytest.__file__).parent / "__main__.py") == []
    assert project_sources(Path(runpy.__file__)) == []


def test_odd_things_among_the_modules_are_passed_over(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "planted.none", None)  # type: ignore[arg-type]
    odd = ModuleType("odd")
    odd.__file__ = str(project / "gone.py")
    monkeypatch.setitem(sys.modules, "planted.odd", odd)

    assert len(project_sources(project / "main.py")) == 4


def _main(monkeypatch: pytest.MonkeyPatch, file: Path | None) -> None:
    module = ModuleType("__main__")
    if file is not None:
        module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "__main__", module)


def test_the_code_lies_where_the_script_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _main(monkeypatch, tmp_path / "project" / "train.py")
    assert code_place() == tmp_path / "project" / "train.py"


@pytest.mark.parametrize(
    "installed",
    [
        None,
        Path(sysconfig.get_path("scripts")) / "torchrun",
        Path(sysconfig.get_path("purelib")) / "tool" / "__main__.py",
        Path("/elsewhere/site-packages/tool/__main__.py"),
    ],
    ids=["notebook", "console script", "installed module", "another environment's"],
)
def test_the_code_of_a_notebook_or_an_installed_script_is_that_of_the_working_directory(
    installed: Path | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _main(monkeypatch, installed)
    monkeypatch.chdir(tmp_path)
    assert code_place() == tmp_path


def _stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a git of its own before the real one."""
    real, own = shutil.which("git"), folder / "bin"
    own.mkdir()
    (own / "git").write_text(f'#!/bin/sh\n{script}\nexec {real} "$@"\n')
    (own / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{own}{os.pathsep}{os.environ['PATH']}")


def test_a_git_that_says_more_than_it_is_asked_tells_no_commit(
    repository: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stand_in(outside, monkeypatch, "echo hello from the cluster")
    assert "commit" not in git_head(repository)
    assert git_dirty(repository) is None


def test_a_status_that_fails_where_nobody_hears_of_ends_is_no_clean_one(
    repository: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert git_dirty(repository) is False
    _stand_in(outside, monkeypatch, 'for one; do [ "$one" = status ] && exit 1; done')
    handler = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert git_dirty(repository) is None
    finally:
        signal.signal(signal.SIGCHLD, handler)


def test_a_branch_is_told_by_its_own_name_though_a_tag_has_the_same(repository: Path) -> None:
    _git(repository, "tag", "trunk")
    assert git_head(repository)["branch"] == "trunk"


def test_of_several_addresses_of_a_remote_the_first_is_told(repository: Path) -> None:
    _git(repository, "remote", "add", "origin", "https://a.example.org/x.git")
    _git(repository, "remote", "set-url", "--add", "origin", "https://b.example.org/x.git")
    assert git_head(repository)["remote"] == "https://a.example.org/x.git"


def test_a_script_that_was_never_added_is_not_what_was_committed(repository: Path) -> None:
    script = repository / "pkg" / "new [1].py"
    script.write_text("x = 2\n")
    assert git_dirty(script) is True
    _git(repository, "add", ".")
    assert git_dirty(script) is True
    _git(repository, "commit", "-q", "-m", "second")
    assert git_dirty(script) is False
    assert git_dirty(repository / "pkg" / "main.py") is False
