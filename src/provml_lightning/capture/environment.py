"""Where and how a process runs: interpreter, machine, launcher and installed packages."""

from __future__ import annotations

import getpass
import os
import platform
import re
import shlex
import socket
import sys
import time
from contextlib import suppress
from itertools import takewhile
from multiprocessing import parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.redaction import redact, redact_arguments
from provml_lightning.domain.values import Plain, to_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["environment_facts", "installed_packages", "requirements_text"]

_VARIABLES = (
    # which part of a job this process is
    *("SLURM_JOB_ID", "SLURM_JOB_NAME", "SLURM_JOB_PARTITION", "SLURM_CLUSTER_NAME"),
    *("SLURM_JOB_NODELIST", "SLURM_NNODES", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID"),
    *("SLURM_NODEID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_RESTART_COUNT"),
    *("PBS_JOBID", "LSB_JOBID", "JOB_ID", "FLUX_JOB_ID", "COBALT_JOBID"),
    *("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
    *("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"),
    *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    *("PMI_RANK", "PMI_SIZE", "PMIX_RANK"),
    # what changes its results or its speed
    *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONHASHSEED", "PL_GLOBAL_SEED"),
    *("CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "CONDA_DEFAULT_ENV", "VIRTUAL_ENV"),
)
_LIBRARIES = (
    "torch",
    "lightning",
    "pytorch_lightning",
    "numpy",
    "pandas",
    "sklearn",
    "transformers",
)
_DISTRIBUTION = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*?)-(?P<version>v?\d[\w.!+]*)")
_STARTED = (
    "from multiprocessing.spawn import spawn_main",
    "from multiprocessing.forkserver import main",
)
_BUILT_FOR = re.compile(r"-py\d.*")  # the end of an egg's name: its Python and platform
_METADATA = ("METADATA", "PKG-INFO", "")  # in a folder; an .egg-info file is its own metadata


def environment_facts() -> dict[str, Plain]:
    """Return what is true of this process: interpreter, machine, user, command, launcher.

    Secrets in the command line and in variables are masked. Only libraries that are already
    imported tell their version. What cannot be told is absent; no process is started.

    Returns:
        ``python_version``, ``python_implementation``, ``executable``, ``operating_system``,
        ``release``, ``machine``, ``processor``, ``host_name``, ``pid``, ``user``, ``time_zone``,
        ``working_directory``, ``command_line``, ``cpu_count`` and ``usable_cpus`` [1]; launcher
        variables under their own names, as ``SLURM_JOB_ID``; ``torch_version`` and the like.
    """
    told = {name: _told(ask) for name, ask in _QUESTIONS.items()}
    facts: dict[str, Plain] = {name: value for name, value in told.items() if value}
    facts |= {name: redact(os.environ[name]) for name in _VARIABLES if name in os.environ}
    return facts | _loaded_versions()


def installed_packages() -> list[tuple[str, str]]:
    """Return name and version of each installed distribution, sorted by name.

    Names are in the normal form of the Python packaging guide. Where a distribution lies twice on
    ``sys.path``, the first is the one that is imported.
    """
    found: dict[str, str] = {}
    for folder in dict.fromkeys(sys.path):
        here = dict(_distributions(folder or "."))
        found = here | found
    return sorted(found.items())


def requirements_text(packages: Iterable[tuple[str, str]]) -> str:
    """Return the packages as lines that ``pip install -r`` reads."""
    return "".join(f"{name}=={version}\n" for name, version in packages)


def _told(ask: Callable[[], Plain | None]) -> Plain | None:
    try:
        return ask()
    except (OSError, KeyError, ValueError, AttributeError):  # a system that cannot tell
        return None


def _user() -> str:
    # Without a passwd entry, as in containers with any UID: KeyError, from 3.13 OSError; Windows
    # without its variables: ImportError.
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"uid-{os.getuid()}" if hasattr(os, "getuid") else "unknown"


def _processor() -> str:
    # platform.processor() would start `uname -p`.
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith(("model name", "cpu model")):
                return line.partition(":")[2].strip()
    return os.environ.get("PROCESSOR_IDENTIFIER", "")


def _time_zone() -> str:
    named = os.environ.get("TZ", "").removeprefix(":")
    if not named:
        with suppress(OSError):
            link = Path("/etc/localtime").readlink().as_posix()
            named = link.partition("zoneinfo/")[2]
    return named or time.tzname[time.localtime().tm_isdst > 0]


def _usable_cpus() -> int:
    return len(os.sched_getaffinity(0))


def _command() -> list[str]:
    """Return what was typed, for a process that multiprocessing started too.

    Source:
        ``/proc/<pid>/cmdline`` of the process that let it be started; where that cannot be read,
        the interpreter's own arguments and the script's, which multiprocessing hands on.
    """
    told = sys.orig_argv
    code, parent = _code_of_multiprocessing(told), parent_process()
    if code is None or parent is None:
        return told
    with suppress(OSError):
        content = Path(f"/proc/{parent.pid}/cmdline").read_bytes()
        typed = [os.fsdecode(argument) for argument in content.split(b"\0")[:-1]]
        if typed and _code_of_multiprocessing(typed) is None:
            return typed
    return [*told[:code], *sys.argv] if sys.argv[:1] != ["-c"] else told


def _code_of_multiprocessing(command: list[str]) -> int | None:
    """Return where a command runs the code of multiprocessing's own, None where it does not.

    Only options of the interpreter stand before it, each in one argument.
    """
    options = list(takewhile(lambda argument: argument.startswith("-"), command[1:]))
    code = options.index("-c") + 1 if "-c" in options else None
    is_its_own = code is not None and "".join(command[code + 1 : code + 2]).startswith(_STARTED)
    return code if is_its_own else None


_QUESTIONS: dict[str, Callable[[], Plain | None]] = {
    "python_version": platform.python_version,
    "python_implementation": platform.python_implementation,
    "executable": lambda: sys.executable,
    "operating_system": platform.system,
    "release": platform.release,
    "machine": platform.machine,
    "processor": _processor,
    "host_name": socket.gethostname,
    "pid": os.getpid,
    "user": _user,
    "working_directory": os.getcwd,
    "time_zone": _time_zone,
    "command_line": lambda: to_plain(shlex.join(redact_arguments(_command()))),
    "cpu_count": os.cpu_count,
    "usable_cpus": _usable_cpus,
}


def _loaded_versions() -> dict[str, Plain]:
    loaded = {name: sys.modules[name] for name in _LIBRARIES if name in sys.modules}
    versions: dict[str, Any] = {
        name: getattr(module, "__version__", None) for name, module in loaded.items()
    }
    return {f"{name}_version": str(version) for name, version in versions.items() if version}


def _distributions(folder: str) -> Iterator[tuple[str, str]]:
    with suppress(OSError), os.scandir(folder) as listing:  # a zip, or a folder that is not there
        for entry in listing:
            stem, dot, kind = entry.name.rpartition(".")
            if dot and kind in {"dist-info", "egg-info"}:
                yield from _distribution(stem, kind, entry.path)


def _distribution(stem: str, kind: str, path: str) -> Iterator[tuple[str, str]]:
    plain = _BUILT_FOR.sub("", stem) if kind == "egg-info" else stem
    told = _DISTRIBUTION.fullmatch(plain)
    name, version = (told["name"], told["version"]) if told else _from_metadata(Path(path))
    if name and version:
        yield re.sub(r"[-_.]+", "-", name).lower(), version


def _from_metadata(path: Path) -> tuple[str | None, str | None]:
    for metadata in _METADATA:
        with suppress(OSError):
            text = (path / metadata).read_text(encoding="utf-8", errors="replace")
            head = dict(
                line.partition(": ")[::2] for line in text.partition("\n\n")[0].splitlines()
            )
            return head.get("Name"), head.get("Version")
    return None, None
