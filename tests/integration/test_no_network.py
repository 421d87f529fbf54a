"""On a node whose packets are dropped nothing waits for the network, since nothing asks it.

codecarbon's tracker stands still for 23 s there, and then tells of Canada.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import prov4ml

if TYPE_CHECKING:
    from pathlib import Path

# Everything that Python itself asks of a network tells the interpreter's audit hook.
WATCHED = """
import json, sys
asked = []
EVENTS = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr",
          "socket.getnameinfo", "socket.sendto", "socket.sendmsg", "urllib.Request"}
def watch(event, arguments):
    if event in EVENTS:
        asked.append(event)
sys.addaudithook(watch)
"""
RUN = """
import prov4ml
prov4ml.start_run("node", provenance_save_dir="prov", country="IT")
for step in range(2):
    prov4ml.log_metric("loss", 0.5, prov4ml.Context.TRAINING, step)
    prov4ml.log_system_metrics(prov4ml.Context.TRAINING, step)
    prov4ml.log_carbon_metrics(prov4ml.Context.TRAINING, step)
prov4ml.end_run()
print(json.dumps(asked))
"""
METER = """
import prov4ml
meter = prov4ml.PowerMeter(project_name="MNIST classifier", is_online=False, location="FR")
with meter("p", "a"):
    pass
default = prov4ml.PowerMeter()
with default("p", "b"):
    pass
print(json.dumps(asked))
"""
LOOKUP = """
import threading, prov4ml
meter = prov4ml.PowerMeter(get_country=True, api_endpoint="https://rows.example.org/rows")
with meter("p", "a"):
    pass
print(json.dumps(sorted(set(asked))))
"""
DROPPED = """
import socket
probe = socket.socket()
probe.settimeout(0.5)
try:
    probe.connect(("192.0.2.1", 80))
except TimeoutError:
    print("dropped")
"""
BLACK_HOLE = 'ip link set lo up && ip route add default dev lo && exec "$0" -W ignore -c "$1"'


def in_black_hole(program: str, folder: Path) -> str:
    """Run a program where every packet goes nowhere, and return what it printed."""
    done = subprocess.run(
        ["unshare", "--map-root-user", "--net", "sh", "-c", BLACK_HOLE, sys.executable, program],  # noqa: S607
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def black_hole() -> None:
    """Skip where this machine lets nobody have a network of his own."""
    for tool in ("unshare", "ip"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    probe = ["unshare", "--map-root-user", "--net", "sh", "-c", BLACK_HOLE, "true"]
    if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine allows no network namespaces")


def test_packets_are_dropped_here(tmp_path: Path) -> None:
    assert in_black_hole(DROPPED, tmp_path) == "dropped\n"


def test_a_whole_run_with_its_energies_and_emissions_asks_no_network(tmp_path: Path) -> None:
    assert json.loads(in_black_hole(WATCHED + RUN, tmp_path)) == []
    emissions = prov4ml.get_metric(tmp_path / "prov" / "node_0", "emissions")
    assert len(emissions) == 2
    document = json.loads((tmp_path / "prov" / "node_0" / "prov_node_0.json").read_text())
    assert document["activity"]["run/node_0"]["provml:country_iso_code"] == "ITA"


def test_a_meter_asks_no_network_unless_it_was_told_to(tmp_path: Path) -> None:
    assert json.loads(in_black_hole(WATCHED + METER, tmp_path)) == []
    assert (tmp_path / "emissions.csv").read_text().count("\n") == 3


def test_a_meter_that_was_told_to_goes_on_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    asked = json.loads(in_black_hole(WATCHED + LOOKUP, tmp_path))
    assert "socket.getaddrinfo" in asked  # the watch sees what is asked
    assert (tmp_path / "emissions.csv").read_text().count("\n") == 2
    assert len(list(tmp_path.glob("state/**/*.json"))) == 1
