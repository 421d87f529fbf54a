from __future__ import annotations

import http.server
import json
import stat
import subprocess
import sys
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from prov4ml import PowerMeter
from provml_lightning.errors import ProvMLWarning, RecordDroppedWarning
from provml_lightning.wrappers.metering.columns import INHERITED
from provml_lightning.wrappers.metering.uploads import Uploads, spool_of, uploads_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Rows = Callable[..., list[dict[str, str]]]


class Endpoint(http.server.ThreadingHTTPServer):
    """Answers with the statuses that it is given, one after the other, the last for ever."""

    daemon_threads = True

    def __init__(self) -> None:
        self.statuses = [200]
        self.wait = threading.Event()
        self.wait.set()
        self.seen: list[dict[str, Any]] = []
        self.taken: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/rows?token=s3cret"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.wait.wait(60)
        self.server.seen.append(row)
        status = self.server.statuses[0]
        if len(self.server.statuses) > 1:
            self.server.statuses.pop(0)
        if status < 300:
            self.server.taken.append(row)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.wait.set()
    server.shutdown()
    server.server_close()
    thread.join(10)


def meter(endpoint: Endpoint, **told: Any) -> PowerMeter:
    return PowerMeter(**{"location": "FR", "api_endpoint": endpoint.address, **told})


def measure(meter: PowerMeter, name: str) -> None:
    with meter("p", name):
        pass
    sent(meter)


def sent(meter: PowerMeter) -> None:
    """Wait until the thread has done what it could."""
    uploads = meter._ledger.uploads  # noqa: SLF001
    assert uploads is not None
    uploads.finish(30)


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["Algorithm"] for row in rows]


def test_the_twenty_five_columns_are_posted_and_nothing_else(
    endpoint: Endpoint, rows: Rows
) -> None:
    measure(meter(endpoint, client_name="Client X"), "one")
    (posted,) = endpoint.taken
    assert tuple(posted) == INHERITED
    assert posted["Client name"] == "Client X"
    assert posted["Cumulative GPU Energy (mWh)"] is None
    assert posted["Cumulative Package Energy (mWh)"] == float(
        rows()[0]["Cumulative Package Energy (mWh)"]
    )
    assert list(spool_of(endpoint.address).iterdir()) == []
    assert "provml-upload" not in {thread.name for thread in threading.enumerate()}


def test_a_slow_endpoint_is_not_waited_for(endpoint: Endpoint, rows: Rows) -> None:
    endpoint.wait.clear()
    slow = meter(endpoint)
    for name in ("one", "two"):
        with slow("p", name):
            pass
    assert names(rows()) == ["one", "two"]  # while nothing was answered
    assert endpoint.seen == []
    endpoint.wait.set()
    sent(slow)
    assert names(endpoint.taken) == ["one", "two"]


def test_what_a_failing_endpoint_did_not_take_is_sent_with_the_next(endpoint: Endpoint) -> None:
    endpoint.statuses = [500, 200]
    failing = meter(endpoint)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        measure(failing, "one")
        assert len(list(spool_of(endpoint.address).glob("*.json"))) == 1
        measure(failing, "two")
    assert [issubclass(one.category, RecordDroppedWarning) for one in told] == [True]
    assert "HTTP Error 500" in str(told[0].message)
    assert "s3cret" not in str(told[0].message)
    assert names(endpoint.taken) == ["one", "two"]
    assert list(spool_of(endpoint.address).iterdir()) == []


def test_an_endpoint_that_is_down_disturbs_nothing(rows: Rows) -> None:
    # CarbonAI's error replaced the body's own.
    server = Endpoint()
    address = server.address
    server.server_close()
    down = PowerMeter(location="FR", api_endpoint=address)
    error = ValueError("mine")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(ValueError, match="mine") as raised, down("p", "one"):
            raise error
        sent(down)
        measure(down, "two")
    assert raised.value is error
    assert len(told) == 1
    assert "is not reached" in str(told[0].message)
    assert names(rows()) == ["one", "two"]
    assert len(list(spool_of(address).glob("*.json"))) == 2


def test_a_redirect_is_not_taken_for_success(endpoint: Endpoint) -> None:
    endpoint.statuses = [302]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordDroppedWarning)
        measure(meter(endpoint), "one")
    assert len(list(spool_of(endpoint.address).glob("*.json"))) == 1


def test_a_row_that_is_refused_for_good_does_not_hold_up_the_others(endpoint: Endpoint) -> None:
    endpoint.statuses = [422, 200]
    refused = meter(endpoint)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        measure(refused, "one")
        measure(refused, "two")
    assert "refused a row (HTTP 422)" in str(told[0].message)
    assert names(endpoint.taken) == ["two"]
    (kept,) = spool_of(endpoint.address).iterdir()
    assert kept.suffix == ".refused"
    assert json.loads(kept.read_bytes())["Algorithm"] == "one"


def test_rows_made_offline_are_sent_by_the_next_meter_that_is_online(endpoint: Endpoint) -> None:
    measure(meter(endpoint, is_online=False), "one")
    assert endpoint.seen == []
    measure(meter(endpoint), "two")
    assert names(endpoint.taken) == ["one", "two"]


def test_rows_that_wait_are_for_their_user_s_eyes_alone(endpoint: Endpoint) -> None:
    measure(meter(endpoint, is_online=False), "one")
    folder = spool_of(endpoint.address)
    (file,) = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_state_folder_that_takes_nothing_is_a_warning(
    endpoint: Endpoint, rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    full = meter(endpoint)
    with pytest.warns(RecordDroppedWarning, match="a row is not posted"), full("p", "one"):
        pass
    assert names(rows()) == ["one"]


@pytest.mark.parametrize("address", ["http://user:pw@example.org/rows", "http://203.0.113.1/rows"])
def test_an_endpoint_without_encryption_is_a_warning(address: str) -> None:
    with pytest.warns(ProvMLWarning, match="is not encrypted") as told:
        uploads_of(address, online=False)
    assert "pw" not in str(told[0].message)


def test_an_encrypted_endpoint_is_no_warning() -> None:
    assert isinstance(uploads_of("https://example.org/rows", online=False), Uploads)
    assert uploads_of(None, online=True) is uploads_of("", online=True) is None


PROGRAM = """
import sys, time
import prov4ml
m = prov4ml.PowerMeter(location="FR", api_endpoint=sys.argv[1])
with m("p", sys.argv[2]):
    pass
print(time.time(), flush=True)
"""


def leave(tmp_path: Path, endpoint: Endpoint, name: str) -> float:
    """Return for how long a program went on after its last line [s]."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, endpoint.address, name],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=100,
    )
    return time.time() - float(done.stdout)


def test_a_program_ends_though_the_endpoint_hangs_and_its_row_is_sent_later(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.wait.clear()
    assert leave(tmp_path, endpoint, "one") < 10
    endpoint.statuses = [500, 200]
    endpoint.wait.set()
    leave(tmp_path, endpoint, "two")
    leave(tmp_path, endpoint, "three")
    assert set(names(endpoint.taken)) >= {"one", "two", "three"}
    assert list(spool_of(endpoint.address).iterdir()) == []
