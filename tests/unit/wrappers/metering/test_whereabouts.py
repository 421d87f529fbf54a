from __future__ import annotations

import http.server
import socket
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from prov4ml import PowerMeter
from provml_lightning.errors import ConfigurationError, RecordDroppedWarning
from provml_lightning.wrappers.metering import whereabouts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Rows = Callable[..., list[dict[str, str]]]


def row_of(meter: PowerMeter, rows: Rows) -> dict[str, str]:
    with meter("p", "a"):
        pass
    return rows()[-1]


@pytest.mark.parametrize(
    ("spelled", "code", "name"),
    [
        ("FR", "FR", "France"),
        ("fr", "FR", "France"),
        ("FRA", "FR", "France"),
        (" france ", "FR", "France"),
        ("NA", "NA", "Namibia"),  # CarbonAI took it for "not a number"
        ("GB", "GB", "United Kingdom"),
        ("UK", "GB", "United Kingdom"),
        ("gbr", "GB", "United Kingdom"),
        ("EL", "GR", "Greece"),
        ("GR", "GR", "Greece"),
    ],
)
def test_a_location_may_be_spelled_in_any_way(
    rows: Rows, spelled: str, code: str, name: str
) -> None:
    row = row_of(PowerMeter(location=spelled, is_online=False), rows)
    assert (row["ISO"], row["Country"]) == (code, name)
    assert float(row["Carbon intensity (gCO2e/kWh)"]) > 0
    assert "CodeCarbon" in row["Carbon intensity source"]


def test_an_unknown_location_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"'Frnace' is no country.*did you mean France"):
        PowerMeter(location="Frnace", is_online=False)
    assert issubclass(ConfigurationError, ValueError)


def test_a_location_is_needed_where_none_is_to_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="location must be set where get_country=False"):
        PowerMeter(get_country=False)
    PowerMeter(get_country=False, carbon_intensity=50)
    monkeypatch.setenv("PROVML_COUNTRY", "IT")
    PowerMeter(get_country=False)


def test_what_the_environment_tells_is_taken_where_nothing_else_is(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVML_COUNTRY", "IT")
    monkeypatch.setenv("PROVML_PUE", "1.1")
    row = row_of(PowerMeter(), rows)
    assert (row["ISO"], row["PUE"]) == ("IT", "1.1")
    assert row_of(PowerMeter(location="FR", pue=1.2), rows)["ISO"] == "FR"
    assert rows()[-1]["PUE"] == "1.2"


@pytest.mark.parametrize(
    ("platform", "pue"), [("linux", "1.58"), ("darwin", "1.3"), ("win32", "1.3")]
)
def test_the_pue_is_carbonai_s_of_the_platform(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, platform: str, pue: str
) -> None:
    PowerMeter(location="FR", is_online=False)  # loads what looks at the platform itself
    with monkeypatch.context() as other:
        other.setattr(sys, "platform", platform)
        meter = PowerMeter(location="FR", is_online=False)
    assert row_of(meter, rows)["PUE"] == pue


def test_without_a_location_there_are_energies_and_a_warning_and_no_country(rows: Rows) -> None:
    # CarbonAI took France, CodeCarbon takes Canada.
    with pytest.warns(RecordDroppedWarning, match="location unknown, so energies only"):
        meter = PowerMeter(is_online=False)
    row = row_of(meter, rows)
    assert row["ISO"] == row["Country"] == row["CO2 emitted (gCO2e)"] == ""
    assert float(row["Package energy (J)"]) >= 0


class Reached(BaseException):
    """Not an Exception: nothing may swallow it."""


@pytest.fixture
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise Reached

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(threading.Thread, "start", _guarded(threading.Thread.start))


def _guarded(start: Any) -> Any:
    def guarded(thread: threading.Thread) -> None:
        if thread.name in ("provml-country", "provml-upload"):
            raise Reached
        start(thread)

    return guarded


@pytest.mark.usefixtures("no_sockets")
@pytest.mark.parametrize(
    "told",
    [
        {"is_online": False, "location": "FR"},
        {"is_online": False, "get_country": True},
        {"is_online": False, "location": "FR", "api_endpoint": "https://example.org/rows"},
        {},
        {"location": "FR", "get_country": True},
        {"location": "FR", "get_country": False},
    ],
    ids=["offline", "offline and asked", "offline with endpoint", "default", "told", "told only"],
)
def test_no_socket_is_opened_unless_that_was_asked_for(rows: Rows, told: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordDroppedWarning)
        meter = PowerMeter(**told)
    row_of(meter, rows)


@pytest.mark.usefixtures("no_sockets")
def test_the_guard_sees_a_lookup() -> None:
    with pytest.raises(Reached):
        PowerMeter(get_country=True)


@contextmanager
def service(answer: bytes, wait: float = 0.0, status: int = 200) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(wait)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/json"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@pytest.mark.parametrize("way", ["keyword", "position", "config"])
def test_the_country_is_looked_up_where_that_is_written_out(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    (tmp_path / "config.json").write_text('{"get_country": true}')
    with service(b'{"ip": "203.0.113.1", "country": "IT"}') as address:
        monkeypatch.setattr(whereabouts, "SERVICE", address)
        match way:
            case "keyword":
                meter = PowerMeter(get_country=True)
            case "position":
                meter = PowerMeter("", "", "", "", "", "", True)
            case _:
                meter = PowerMeter.from_config("config.json")
    assert row_of(meter, rows)["ISO"] == "IT"


@pytest.mark.parametrize(
    ("answer", "status"),
    [(b"{}", 200), (b'{"country": "XX"}', 200), (b"<html>", 200), (b"[]", 200), (b"", 429)],
    ids=["no country", "no such country", "no JSON", "no object", "refused"],
)
def test_a_service_that_tells_nothing_is_a_warning(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, answer: bytes, status: int
) -> None:
    with service(answer, status=status) as address:
        monkeypatch.setattr(whereabouts, "SERVICE", address)
        with pytest.warns(RecordDroppedWarning, match="did not tell it"):
            meter = PowerMeter(get_country=True)
    assert row_of(meter, rows)["CO2 emitted (gCO2e)"] == ""


def test_a_name_that_is_never_resolved_is_waited_for_until_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # requests' time-out does not bound the resolution: codecarbon waits 23 s here.
    over = threading.Event()

    def hang(*_: Any, **__: Any) -> None:
        over.wait(60)
        raise OSError("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    monkeypatch.setattr(whereabouts, "LONGEST_LOOKUP", 0.2)
    try:
        with pytest.warns(RecordDroppedWarning, match="no answer within 0.2 s"):
            PowerMeter(get_country=True)
    finally:
        over.set()


def test_the_deadline_is_two_seconds_and_the_service_is_encrypted() -> None:
    assert whereabouts.LONGEST_LOOKUP <= 2
    assert whereabouts.SERVICE.startswith("https://")
