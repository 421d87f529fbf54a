"""Where a meter writes: its file, and memory for what the disk refuses."""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from provml_lightning.errors import ConfigurationError, StorageWarning
from provml_lightning.runtime.faults import warn
from provml_lightning.wrappers.metering.tables import append_csv, append_excel, require_openpyxl

if TYPE_CHECKING:
    from provml_lightning.wrappers.metering.columns import Row

__all__ = ["Output", "output_of"]

_MOST_WAITING = 10_000
_SUFFIXES = {"csv": ".csv", "excel": ".xlsx"}
_APPEND = {"csv": append_csv, "excel": append_excel}


class Output:
    """Appends rows to a file; those that the disk does not take wait, and are tried again.

    Every method may be called from any thread.

    Args:
        path: The file.
        form: ``"csv"`` or ``"excel"``.
    """

    def __init__(self, path: Path, form: str) -> None:
        self.path = path
        self.form = form
        self._lock = threading.RLock()  # a signal's handler may measure in the midst of a measure
        self._waiting: deque[Row] = deque(maxlen=_MOST_WAITING)
        self._warned = False
        self._pid = os.getpid()

    def add(self, row: Row) -> None:
        """Append a row; a failure is one warning."""
        if self._pid != os.getpid():  # born by fork: what waits is the parent's
            Output.__init__(self, self.path, self.form)
        with self._lock:
            self._waiting.append(row)
            self._write()

    def finish(self) -> None:
        """Try once more to write what waits, and tell what is lost."""
        if self._pid != os.getpid() or not self._waiting:
            return
        with self._lock:
            self._write()
            lost = len(self._waiting)
        if lost:
            warn(f"{lost} rows of {self.path} are lost: the disk took nothing until the end")

    def _write(self) -> None:
        rows: list[Row] = []
        while self._waiting:  # taken before they are written: a signal's handler may come between
            rows.append(self._waiting.popleft())
        try:
            _APPEND[self.form](self.path, rows)
        except Exception as error:  # noqa: BLE001  no file may disturb what was measured
            self._waiting.extendleft(reversed(rows))
            if not self._warned:
                self._warned = True
                atexit.register(self.finish)
                warn(
                    f"{self.path} takes no rows ({error}); the measures go on, and their rows wait"
                    " in memory for the next try",
                    StorageWarning,
                )

    @override
    def __reduce__(self) -> Any:
        return Output, (self.path, self.form)


def output_of(filepath: Any, output_format: str) -> Output:
    """Return where a meter writes; without a path ``emissions.csv`` in the working folder.

    A path that ends in ``.xlsx`` is Excel's whatever the format, as with CarbonAI; a folder is one
    to write ``emissions.csv`` in.

    Raises:
        ConfigurationError: The format is not known, or the path's ending is another's.
        MissingExtraError: The format is Excel's, and openpyxl is not installed.
    """
    if output_format not in tuple(_SUFFIXES):  # a config file may give what has no hash
        raise ConfigurationError(f"output_format={output_format!r} must be 'csv' or 'excel'")
    if not isinstance(filepath, (str, os.PathLike, type(None))):
        raise ConfigurationError(f"filepath={filepath!r} must be a path")
    path = Path(filepath or ".").expanduser()
    if path.is_dir() or str(filepath or "").endswith(("/", os.sep)):
        path /= f"emissions{_SUFFIXES[output_format]}"
    form = "excel" if path.suffix.lower() == ".xlsx" else output_format
    if form == "excel":
        if path.suffix.lower() != ".xlsx":
            raise ConfigurationError(f"filepath={str(filepath)!r}: Excel's files end in .xlsx here")
        require_openpyxl()
    # Whoever changes the working folder later still finds all rows in one file.
    return Output(path.absolute(), form)
