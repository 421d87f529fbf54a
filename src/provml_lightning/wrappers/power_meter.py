"""PowerMeter: what a piece of code used, by the interface and the columns of CarbonAI."""

from __future__ import annotations

import atexit
import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from typing_extensions import override

from provml_lightning.domain.carbon import CarbonSettings
from provml_lightning.errors import RecordDroppedWarning
from provml_lightning.runtime.faults import warn
from provml_lightning.wrappers.metering import whereabouts
from provml_lightning.wrappers.metering.columns import DATETIME_FORMAT
from provml_lightning.wrappers.metering.configuration import (
    check_choices,
    check_texts,
    powercap_in,
    read_config,
    telling_what_was_asked,
)
from provml_lightning.wrappers.metering.decorating import measured
from provml_lightning.wrappers.metering.labels import labels_of, whose_of
from provml_lightning.wrappers.metering.measure import Block, Ledger, Measure
from provml_lightning.wrappers.metering.outputs import output_of
from provml_lightning.wrappers.metering.uploads import uploads_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable


__all__ = ["PowerMeter"]

P = ParamSpec("P")
R = TypeVar("R")


class PowerMeter:
    """Measures what code used: CPU, memory and GPU energy, and the emissions of it.

    Every measure is a row of a file, with CarbonAI's twenty-five columns and ours after them, and
    an activity of the current run where there is one. Energies are of the machine; the columns
    ``process`` have this process's share. What cannot be measured is an empty cell.

    Measures may be nested, of several threads, and of coroutines. Whatever fails in them is a
    warning: the measured code sees its own exceptions and no others.

    No network call is made unless it was asked for: with ``get_country=True`` written out, for
    the country, and with ``api_endpoint``. The rows hold private data (user, project, country);
    they go nowhere but to the file and that endpoint.

    Args:
        project_name: What the code belongs to; the working folder's name if empty.
        program_name: The program.
        client_name: Whom it is done for.
        user_name: Who does it; the machine's user if empty.
        cpu_power_log_path: The powercap folder to read the CPUs' counters from, where it is not
            ``/sys/class/powercap``. CarbonAI's other tools are not needed.
        powerlog_save_path: Recorded in each row, for who has another tool's logs there.
        get_country: Given as True, the country is looked up by this machine's address where no
            location is told. Given as False, ``location`` must be told. The default looks nothing
            up.
        location: Country by ISO 3166 code or English name, in any case; ``PROVML_COUNTRY`` if
            empty.
        is_online: False: no socket is ever opened.
        filepath: File of the rows; ``emissions.csv`` in the working folder if empty.
        output_format: ``"csv"``, or ``"excel"`` with the extra of that name.
        api_endpoint: Where the first twenty-five columns of each row are posted to as JSON, in
            the background.
        region: State, province or bidding zone, where CodeCarbon tells them apart.
        carbon_intensity: Emissions of the electricity [gCO2eq/kWh]; goes before the location.
        pue: Energy of the data centre over that of its machines [1]; if None ``PROVML_PUE``, else
            CarbonAI's 1.3 on macOS and Windows and 1.58 elsewhere.

    Raises:
        ConfigurationError: An argument cannot work.
        MissingExtraError: Excel is asked for and openpyxl is not installed.
    """

    LAPTOP_PUE: ClassVar[float] = whereabouts.LAPTOP_PUE
    SERVER_PUE: ClassVar[float] = whereabouts.SERVER_PUE
    DATETIME_FORMAT: ClassVar[str] = DATETIME_FORMAT

    _asked_for_country = False

    @telling_what_was_asked
    def __init__(
        self,
        project_name: str = "",
        program_name: str = "",
        client_name: str = "",
        user_name: str = "",
        cpu_power_log_path: str = "",
        powerlog_save_path: str = "",
        get_country: bool = True,
        location: str = "",
        is_online: bool = True,
        filepath: str | os.PathLike[str] | None = None,
        output_format: str = "csv",
        api_endpoint: str | None = None,
        *,
        region: str | None = None,
        carbon_intensity: float | None = None,
        pue: float | None = None,
    ) -> None:
        names = (project_name, program_name, client_name, user_name)
        check_texts(
            project_name=project_name,
            program_name=program_name,
            client_name=client_name,
            user_name=user_name,
            cpu_power_log_path=cpu_power_log_path,
            powerlog_save_path=powerlog_save_path,
            location=location,
        )
        check_choices(get_country=get_country, is_online=is_online)
        settings = CarbonSettings(
            country=location or None, region=region, carbon_intensity=carbon_intensity, pue=pue
        )
        place = whereabouts.place_of(
            settings,
            required=not get_country,
            look_up=self._asked_for_country and is_online,
        )
        self._ledger = Ledger(
            whose_of(*names),
            place,
            output_of(filepath, output_format),
            uploads_of(api_endpoint, online=is_online),
            powercap_in(cpu_power_log_path),
            powerlog_save_path or None,
        )
        self._started: list[tuple[int, Measure]] = []

    @classmethod
    def from_config(cls, path: str | os.PathLike[str]) -> PowerMeter:
        """Return a meter whose arguments are the keys of a JSON file.

        Args:
            path: The file.

        Raises:
            ConfigurationError: It cannot be read, or names something that is no argument.
        """
        return cls(**read_config(path, inspect.signature(cls).parameters))

    def __call__(
        self,
        package: str,
        algorithm: str,
        step: str = "other",
        data_type: str = "",
        data_shape: Any = "",
        algorithm_params: Any = "",
        comments: str = "",
    ) -> Block:
        """Return a block to be entered with ``with`` or ``async with``.

        Args:
            package: What is used, such as ``"sklearn"``.
            algorithm: What is done with it, such as ``"RandomForestClassifier"``.
            step: ``"inference"``, ``"training"``, ``"test"``, ``"run"``, ``"preprocessing"``,
                ``"other"``, or any other text.
            data_type: What the data are, such as ``"tabular"``.
            data_shape: How much of them.
            algorithm_params: With which parameters.
            comments: Anything else.

        Raises:
            ConfigurationError: Package or algorithm is empty.
        """
        labels = labels_of(
            package, algorithm, step, data_type, data_shape, algorithm_params, comments
        )
        return Block(functools.partial(Measure, self._ledger, labels))

    def measure_power(
        self,
        package: str,
        algorithm: str,
        step: str = "other",
        data_type: str = "",
        data_shape: Any = "",
        algorithm_params: Any = "",
        comments: str = "",
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Return a decorator that measures each call of a function.

        A coroutine or a generator is measured from its first step to its last.

        Args:
            package: As in a block.
            algorithm: As in a block.
            step: As in a block.
            data_type: As in a block.
            data_shape: As in a block.
            algorithm_params: As in a block.
            comments: As in a block.

        Raises:
            ConfigurationError: Package or algorithm is empty.
        """
        labels = labels_of(
            package, algorithm, step, data_type, data_shape, algorithm_params, comments
        )
        begin = functools.partial(Measure, self._ledger, labels)
        return functools.partial(measured, begin=begin)

    def start_measure(
        self,
        package: str,
        algorithm: str,
        step: str = "other",
        data_type: str = "",
        data_shape: Any = "",
        algorithm_params: Any = "",
        comments: str = "",
    ) -> Measure:
        """Begin a measure that ``stop_measure`` ends, or the interpreter's exit.

        Args:
            package: As in a block.
            algorithm: As in a block.
            step: As in a block.
            data_type: As in a block.
            data_shape: As in a block.
            algorithm_params: As in a block.
            comments: As in a block.

        Raises:
            ConfigurationError: Package or algorithm is empty.
        """
        labels = labels_of(
            package, algorithm, step, data_type, data_shape, algorithm_params, comments
        )
        measure = Measure(self._ledger, labels)
        self._started.append((threading.get_ident(), measure))
        atexit.register(measure.end)
        return measure

    def stop_measure(self, measure: Measure | None = None) -> None:
        """End a measure that was started: the last one of this thread, unless it is named.

        Args:
            measure: What ``start_measure`` returned; coroutines that take turns need it.
        """
        if measure is None:
            measure = self._last_started()
        if measure is None:
            warn("stop_measure(): no measure was started", RecordDroppedWarning)
            return
        for entry in [entry for entry in self._started if entry[1] is measure]:
            self._started.remove(entry)
        atexit.unregister(measure.end)
        measure.end()

    def _last_started(self) -> Measure | None:
        """Return the last measure of this thread; of another one where it has none."""
        started, here = list(self._started), threading.get_ident()
        own = [measure for thread, measure in started if thread == here]
        found = own or [measure for _, measure in started]
        return found[-1] if found else None

    @override
    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs; measures under way stay here."""
        return {**vars(self), "_started": []}
