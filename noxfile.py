"""The checks, each in the current environment: ``nox``, or ``nox -s lint types``."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = [
    "lint",
    "types",
    "docs",
    "unit",
    "itwinai_light",
    "conformance",
    "integration",
    "e2e",
]

BIN = Path(sys.executable).parent


def run(session: nox.Session, tool: str, *arguments: str) -> None:
    """Run a tool that is installed beside this interpreter, whether or not it is on the PATH."""
    session.run(str(BIN / tool), *arguments)


def run_tests(session: nox.Session, *folders: str) -> None:
    """Run the tests of some folders, two at a time; a folder without tests fails."""
    at_once = ("--numprocesses=2", "--dist=loadfile")
    session.run(sys.executable, "-m", "pytest", *at_once, *folders, *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Hold style, format and the direction of imports."""
    run(session, "ruff", "check")
    run(session, "ruff", "format", "--check")
    run(session, "lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types, strictly."""
    run(session, "mypy")


@nox.session
def unit(session: nox.Session) -> None:
    """Test each module alone."""
    run_tests(session, "tests/unit")


@nox.session
def conformance(session: nox.Session) -> None:
    """Test what is promised to others, the examples in docstrings included."""
    run_tests(session, "tests/conformance", "src")


@nox.session
def integration(session: nox.Session) -> None:
    """Test several real parts together."""
    run_tests(session, "tests/integration")


@nox.session
def e2e(session: nox.Session) -> None:
    """Test examples and commands as a user runs them."""
    run_tests(session, "tests/e2e")


@nox.session
def itwinai_light(session: nox.Session) -> None:
    """Test beside itwinai's loggers, installed without what the rest of itwinai drags in."""
    install = (sys.executable, "-m", "pip", "install", "--quiet")
    session.run(*install, "--no-deps", "itwinai==0.4.2")
    session.run(*install, "omegaconf", "requests", "typer")
    run_tests(session, "tests/integration/test_itwinai.py")


@nox.session(venv_backend="venv")
def itwinai(session: nox.Session) -> None:
    """Test beside the whole of itwinai, in an environment of its own: it pins numpy below 2."""
    tools = ("plotly", "pytest", "pytest-timeout", "hypothesis")
    session.install("-c", "constraints.txt", "-e", ".[examples]", "itwinai==0.4.2", *tools)
    # itwinai drags it in, built for whichever torch its index has; here it serves nothing.
    session.run("python", "-m", "pip", "uninstall", "--yes", "torchvision")
    tests = ("tests/itwinai", "tests/integration/test_itwinai.py")
    # pynvml, of which it drags in a deprecated package, speaks when torch is imported.
    quiet = ("-W", "ignore:The pynvml package is deprecated:FutureWarning")
    session.run("python", "-m", "pytest", *quiet, *tests, *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure against the budgets."""
    session.run(sys.executable, "-m", "benchmarks", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Follow every link, hold the reference to the docstrings, render the next changelog."""
    session.run(sys.executable, "docs/check_links.py")
    session.run(sys.executable, "docs/write_api.py", "--check")
    run(session, "towncrier", "build", "--draft")


@nox.session
def build(session: nox.Session) -> None:
    """Build the sdist and, from it, the wheel; then look inside the wheel."""
    out = session.create_tmp()
    for old in Path(out).glob("provml_lightning-*"):
        old.unlink()
    session.run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out)
    (wheel,) = Path(out).glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        f"{package}/{file}"
        for package in ("provml_lightning", "prov4ml")
        for file in ("__init__.py", "py.typed")
    }
    if missing := sorted(wanted - held):
        session.error(f"{wheel.name} lacks {', '.join(missing)}")
