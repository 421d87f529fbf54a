"""What every test lives under: no network, no false green."""

from __future__ import annotations

import ipaddress
import shutil
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

# A shared machine stalls now and then; a slow example is not a wrong one.
hypothesis.settings.register_profile("house", deadline=None)
hypothesis.settings.load_profile("house")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a person, and nobody else, write the gold documents anew."""
    parser.addoption("--update-gold", action="store_true", help="write the gold documents anew")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, with the reason, what this machine has no hardware or program for."""
    if item.get_closest_marker("gpu") and not Path("/dev/nvidiactl").exists():
        pytest.skip("needs an NVIDIA GPU")
    if item.get_closest_marker("graphviz") and shutil.which("dot") is None:
        pytest.skip("needs Graphviz's dot on the PATH")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a session in which nothing ran: all skipped is not all passed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or session.config.option.collectonly:
        return
    if exitstatus == pytest.ExitCode.OK and not reporter.stats.get("passed"):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a test that reaches beyond this machine.

    Loopback and Unix sockets stay open, because process groups on one machine need them.
    """
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, _local_only(getattr(socket.socket, name)))


@pytest.fixture(autouse=True)
def _no_run_stays_open() -> Iterator[None]:
    """End what a test left open, and drop the calls that still wait for a run."""
    yield
    active = sys.modules.get("provml_lightning.runtime.active")
    if active is None:
        return
    active.enter(active.SilentRun(rank=0))
    while (run := active.current()) is not None:
        active.leave(run)
        run.close()


def _local_only(connect: Any) -> Any:
    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(address[0]):
            # Not an Exception: code under test must not be able to swallow it.
            pytest.fail(f"the test reached for the network: {address!r}")
        return connect(self, address)

    return guarded


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
