"""The code that runs: its git state and its own modules."""

from __future__ import annotations

import os
import re
import signal
import site
import subprocess
import sys
import sysconfig
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from provml_lightning.domain.redaction import redact

if TYPE_CHECKING:
    from provml_lightning.domain.values import Plain

__all__ = [
    "code_place",
    "git_diff",
    "git_dirty",
    "git_facts",
    "git_head",
    "project_sources",
]

_TIMEOUT = 2.0  # seconds
_LONGEST = 1 << 20  # bytes
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_INSTALLED = frozenset({"site-packages", "dist-packages"})
# A repository's own configuration names programs to run; none of these is.
_GIT = (
    *("git", "--no-pager", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.quotePath=false", "-c", "submodule.recurse=false"),
)
_QUIET = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",  # a partial clone would fetch what it lacks
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}
# What git then says of a file that was touched and is the same: a header alone.
_UNCHANGED = re.compile(rb"^diff --git [^\n]*\n(?=diff --git |\Z)", re.MULTILINE)
# Set where git itself started the process, as in a hook; they point to another repository.
_ELSEWHERE = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"}
    | {"GIT_PREFIX", "GIT_NAMESPACE", "GIT_EXTERNAL_DIFF", "GIT_TRACE"}
)


def code_place() -> Path:
    """Return the script that runs.

    Where there is none, as in a notebook, or it is an installed one, as torchrun is, the working
    directory.

    Raises:
        FileNotFoundError: The working directory was removed.
    """
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if file is None:
        return Path.cwd()
    script = Path(file).resolve()
    installed = {*_installed_folders(), Path(sysconfig.get_path("scripts")).resolve()}
    is_installed = bool(_INSTALLED.intersection(script.parts)) or any(
        script.is_relative_to(one) for one in installed
    )
    return Path.cwd() if is_installed else script


def git_facts(start: Path) -> dict[str, Plain] | None:
    """Return the state of the git repository that ``start`` lies in, None where there is none.

    Nothing is written, fetched or asked, and no hook, file-system monitor or diff program of the
    repository runs. A repository that git itself does not trust (it belongs to somebody else)
    counts as none.

    Returns:
        ``root``; what :func:`git_head` has; ``describe``; ``dirty``, as :func:`git_dirty` has it.
        What git does not answer within 2 s is absent.
    """
    root = _line(start, "rev-parse", "--show-toplevel")
    if root is None:
        return None
    found = {
        "root": root,
        **git_head(start),
        "describe": _line(start, "describe", "--tags", "--always"),
        "dirty": git_dirty(start),
    }
    return {name: value for name, value in found.items() if value is not None}


def git_head(start: Path) -> dict[str, str]:
    """Return what a git repository stands at, nothing where ``start`` lies in none.

    Returns:
        ``commit``, absent before the first; ``branch``, absent on a detached head; ``remote``, the
        URL of origin, or of the first remote, without credentials.
    """
    commit = _line(start, "rev-parse", "--verify", "--quiet", "HEAD")
    branch = _line(start, "symbolic-ref", "--quiet", "HEAD")
    if branch is None and commit is None:
        return {}
    found = {
        "commit": commit if commit and _COMMIT.fullmatch(commit) else None,
        "branch": branch and branch.removeprefix("refs/heads/"),
        "remote": _remote(start),
    }
    return {name: value for name, value in found.items() if value is not None}


def git_dirty(start: Path) -> bool | None:
    """Return whether tracked files differ from the commit; None where git does not say.

    They do where ``start`` is a file that is not among them.
    """
    told = _git(
        start,
        *("status", "--porcelain", "--branch", "--untracked-files=no"),
        "--ignore-submodules=dirty",
    )
    # It says the branch first: else it has failed, which its exit does not tell to who ignores it.
    if told is None or not told.startswith(b"## "):
        return None
    is_new = start.is_file() and _git(start, "ls-files", "--", start.name) == b""
    return is_new or bool(told.partition(b"\n")[2])


def git_diff(start: Path, *, max_bytes: int) -> bytes | None:
    """Return what differs from the last commit in tracked files, as a patch.

    Empty where nothing differs; None without a repository, a commit, or an answer within 2 s. A
    longer patch is cut at a line, and its last line says so.

    Args:
        start: A file or folder in the repository.
        max_bytes: The most that is read [B].
    """
    patch = _git(
        start,
        *("-c", "diff.autoRefreshIndex=false"),  # git 2.39 would write the index in spite of all
        *("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty"),
        *("--no-relative", "--src-prefix=a/", "--dst-prefix=b/", "HEAD", "--"),
        most=max_bytes + 1,
    )
    if patch is None or len(patch) <= max_bytes:
        return _UNCHANGED.sub(b"", patch) if patch else patch
    kept = patch[: patch.rfind(b"\n", 0, max_bytes) + 1]
    return kept + f"# cut: the patch is longer than {max_bytes} bytes\n".encode()


def project_sources(main: Path) -> list[Path]:
    """Return the imported Python files that lie in the folder of ``main``, and ``main``, sorted.

    Files of the standard library, of installed packages and of virtual environments are no
    sources of the project, nor is a link that leads out of the folder.
    """
    script = main.resolve()
    top = script.parent
    files = {
        Path(file).resolve()
        for module in list(sys.modules.values())
        if isinstance(file := getattr(module, "__dict__", {}).get("__file__"), str)
    }
    foreign = _foreign_folders(top)
    return sorted(
        file
        for file in files | {script}
        if file.suffix == ".py" and file.is_file() and _is_own(file, top, foreign)
    )


def _remote(start: Path) -> str | None:
    names = (_line(start, "remote") or "").splitlines()
    if not names:
        return None
    name = "origin" if "origin" in names else names[0]
    url = (_line(start, "config", "--get-all", f"remote.{name}.url") or "").partition("\n")[0]
    return redact(url) or None


def _line(start: Path, *arguments: str) -> str | None:
    answer = _git(start, *arguments)
    return os.fsdecode(answer).strip("\r\n") or None if answer is not None else None


def _git(start: Path, *arguments: str, most: int = _LONGEST) -> bytes | None:
    """Return at most ``most`` bytes of what git answers, None where it fails or takes too long."""
    folder = start if start.is_dir() else start.parent
    environment = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    try:
        with _started([*_GIT, "-C", os.fspath(folder), *arguments], environment) as process:
            return _answer(process, most)
    except OSError:  # git is not installed
        return None


def _started(command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    with _starting:
        return subprocess.Popen(  # noqa: S603  a fixed list, and no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment | _QUIET,
            start_new_session=True,  # so that programs that git starts end with it
        )


# A process that another thread forks while git is being started, such as a loader's worker, would
# keep the other end of git's pipes, and their reader wait for it: so it is forked before or after.
_starting = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_starting.acquire,
        after_in_parent=_starting.release,
        after_in_child=_starting.release,
    )


def _answer(process: subprocess.Popen[bytes], most: int) -> bytes | None:
    timer = threading.Timer(_TIMEOUT, _end, [process])
    timer.daemon = True
    timer.start()
    try:
        answer = process.stdout.read(most) if process.stdout else b""
        if len(answer) == most:
            _end(process)
            return answer
        return answer if process.wait() == 0 else None
    finally:
        timer.cancel()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _installed_folders() -> set[Path]:
    paths = sysconfig.get_paths()
    named = [paths[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    return {Path(folder).resolve() for folder in [*named, *site.getsitepackages()]}


def _foreign_folders(top: Path) -> list[Path]:
    # A folder of libraries above the script holds the script too: then none of it is the user's.
    return [
        folder
        for folder in _installed_folders()
        if folder.is_relative_to(top) or top.is_relative_to(folder)
    ]


def _is_own(file: Path, top: Path, foreign: list[Path]) -> bool:
    if not file.is_relative_to(top) or _INSTALLED.intersection(file.parts):
        return False
    if any(file.is_relative_to(folder) for folder in foreign):
        return False
    between = [top / folder for folder in file.relative_to(top).parents][:-1]
    return not any((folder / "pyvenv.cfg").is_file() for folder in between)
