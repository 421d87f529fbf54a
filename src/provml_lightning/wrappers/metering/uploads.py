"""Rows on their way to an endpoint: kept in a folder first, posted in the background.

A row is a file from the moment it is made until the endpoint has taken it, so that neither a dead
network nor a dead process loses it; the next meter for the same endpoint sends what is left.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import threading
import time
import urllib.error
import urllib.request
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from typing_extensions import override

from provml_lightning.domain.redaction import redact
from provml_lightning.errors import ConfigurationError, ProvMLWarning, RecordDroppedWarning
from provml_lightning.runtime.faults import warn
from provml_lightning.wrappers.metering.locking import held

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provml_lightning.wrappers.metering.columns import Cell

__all__ = ["LONGEST_GOODBYE", "Uploads", "spool_of", "uploads_of"]

LONGEST_GOODBYE = 2.0  # how long an exit waits for what is on its way [s]

_LONGEST_POST = 5.0
_NOT_TAKEN_EVER = frozenset({400, 413, 422})  # the row itself is refused
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_numbers = count()


class _RefusedError(Exception):
    """The endpoint will never take this row."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected POST becomes a GET without its body, which looks like success."""

    @override
    def redirect_request(self, *_: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


class Uploads:
    """Posts rows to an endpoint, one after the other; no call of it waits for the network.

    Args:
        endpoint: An ``https`` address.
        online: Rows may be sent; else they are kept for a meter that is online.
    """

    def __init__(self, endpoint: str, *, online: bool = True) -> None:
        self.endpoint = endpoint
        self.online = online
        self.folder = spool_of(endpoint)
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._asked = False
        self._thread: threading.Thread | None = None
        self._warned = False
        self._pid = os.getpid()
        if self.online:
            atexit.register(self.finish)

    def add(self, row: Mapping[str, Cell]) -> None:
        """Keep a row, and have it sent.

        Raises:
            OSError: The folder does not take it, so that it will not be sent.
        """
        if self._pid != os.getpid():  # born by fork: the thread is the parent's
            self._begin()
        self._keep(json.dumps(row).encode())
        if not self.online:
            return
        with self._lock:
            self._asked = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="provml-upload", daemon=True)
                self._thread.start()

    def finish(self, longest: float = LONGEST_GOODBYE) -> None:
        """Wait until everything is sent, but no longer than so many seconds."""
        thread = self._thread
        if thread is not None and self._pid == os.getpid():
            thread.join(longest)

    def waiting(self) -> list[Path]:
        """Return the files of the rows that wait, the oldest first."""
        return sorted(self.folder.glob("*.json"))

    def _keep(self, content: bytes) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"{time.time_ns():020d}-{os.getpid()}-{next(_numbers)}"
        partial = self.folder / f"{name}.part"
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        partial.rename(self.folder / f"{name}.json")

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._asked:
                    self._thread = None
                    return
                self._asked = False
            try:
                self._send_all()
            except Exception as error:  # noqa: BLE001  a network may fail in any way
                self._tell(f"is not reached ({error}); rows wait in {self.folder}")

    def _send_all(self) -> None:
        folder = os.open(self.folder, os.O_RDONLY) if os.name == "posix" else None
        try:
            if folder is None:
                self._send_waiting()
                return
            with held(folder, longest=60.0):  # another process sends ours too, meanwhile
                self._send_waiting()
        finally:
            if folder is not None:
                os.close(folder)

    def _send_waiting(self) -> None:
        while found := self.waiting():
            for file in found:
                try:
                    self._post(file.read_bytes())
                except FileNotFoundError:
                    continue
                except _RefusedError as error:
                    file.replace(file.with_suffix(".refused"))
                    self._tell(f"refused a row ({error}); it is kept in {self.folder}")
                else:
                    file.unlink(missing_ok=True)

    def _post(self, content: bytes) -> None:
        headers = {"Content-Type": "application/json"}
        # The scheme was looked at when the meter was made.
        request = urllib.request.Request(self.endpoint, content, headers)  # noqa: S310
        try:
            with _opener.open(request, timeout=_LONGEST_POST):
                pass
        except urllib.error.HTTPError as error:
            with error:
                if error.code in _NOT_TAKEN_EVER:
                    raise _RefusedError(f"HTTP {error.code}") from error
                raise

    def _tell(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            warn(f"api_endpoint {redact(self.endpoint)} {what}", RecordDroppedWarning)

    @override
    def __reduce__(self) -> Any:
        return _again, (self.endpoint, self.online)


def uploads_of(endpoint: str | None, *, online: bool) -> Uploads | None:
    """Return what posts to an endpoint; None where there is none.

    Raises:
        ConfigurationError: It is no address of the web.
    """
    if endpoint is None or endpoint == "":
        return None
    try:
        parts = urlsplit(endpoint)
        host = parts.hostname
    except (ValueError, AttributeError, TypeError):
        parts, host = None, None
    if parts is None or parts.scheme not in ("http", "https") or not host:
        raise ConfigurationError(
            f"api_endpoint={endpoint!r} must be an address such as 'https://example.org/rows'"
        )
    if parts.scheme == "http" and host not in _LOCAL:
        warn(
            f"api_endpoint {redact(endpoint)} is not encrypted, so that anybody on the way can"
            " read user, project and country; use https",
            ProvMLWarning,
        )
    return Uploads(endpoint, online=online)


def spool_of(endpoint: str) -> Path:
    """Return the folder, the user's own, in which rows wait for an endpoint."""
    from platformdirs import user_state_path

    digest = hashlib.sha256(endpoint.encode()).hexdigest()[:16]
    return Path(user_state_path("provml-lightning", appauthor=False)) / "uploads" / digest


def _again(endpoint: str, online: bool) -> Uploads:
    return Uploads(endpoint, online=online)
