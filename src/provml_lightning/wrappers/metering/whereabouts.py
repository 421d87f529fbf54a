"""Where a meter's electricity comes from: as it was told, or looked up where that was asked."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from provml_lightning.errors import ConfigurationError, ProvMLError, RecordDroppedWarning
from provml_lightning.runtime.faults import warn
from provml_lightning.samplers.countries import Country, country_of
from provml_lightning.samplers.grid import electricity_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provml_lightning.domain.carbon import CarbonSettings, Electricity

__all__ = ["LAPTOP_PUE", "LONGEST_LOOKUP", "SERVER_PUE", "SERVICE", "Place", "place_of"]

SERVICE = "https://ipinfo.io/json"
LONGEST_LOOKUP = 2.0  # of all of it, the name's resolution too [s]
LAPTOP_PUE = 1.3  # CarbonAI's, for macOS and Windows [1]
SERVER_PUE = 1.58  # CarbonAI's, for everything else [1]

_LONGEST_ANSWER = 65_536


@dataclass(frozen=True, slots=True)
class Place:
    """Where the electricity comes from; the country is None where it is not known."""

    electricity: Electricity
    country: Country | None = None


def place_of(
    settings: CarbonSettings,
    *,
    required: bool,
    look_up: bool,
    environ: Mapping[str, str] = os.environ,
) -> Place:
    """Return the place that was told, else that of the environment, else what a service says.

    No country is ever assumed: where none is known there are energies and no emissions.

    Args:
        settings: Country, region, intensity and PUE, as far as they were told.
        required: One of country and intensity must be known.
        look_up: A service may be asked for the country of this machine's address.
        environ: The environment.

    Raises:
        ConfigurationError: A setting cannot be, or what is required was not told.
    """
    told = settings.completed(environ)
    if told.pue is None:
        told = replace(told, pue=LAPTOP_PUE if sys.platform in ("darwin", "win32") else SERVER_PUE)
    if told.country is None and told.carbon_intensity is None:
        if required:
            raise ConfigurationError(
                "location must be set where get_country=False: give an ISO 3166 code such as"
                " location='IT', or a country's name"
            )
        return _unknown(told, look_up=look_up)
    country = None if told.country is None else country_of(told.country)
    return Place(electricity_of(told), country)


def _unknown(told: CarbonSettings, *, look_up: bool) -> Place:
    reason = "give location= , such as 'IT', or get_country=True to have it looked up by address"
    if look_up:
        try:
            country = _looked_up()
            return Place(electricity_of(replace(told, country=country.alpha3)), country)
        except (OSError, ValueError, ProvMLError) as error:
            reason = f"{SERVICE} did not tell it ({error}); give location= , such as 'IT'"
    warn(f"location unknown, so energies only and no emissions: {reason}", RecordDroppedWarning)
    return Place(electricity_of(told))


def _looked_up() -> Country:
    """Return the country of this machine's address.

    The service is asked in a thread, since no time-out bounds the resolution of its name.

    Raises:
        OSError: It was not reached, or not in time.
        ValueError: It told no country.
    """
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    asking = threading.Thread(
        target=_ask, args=(SERVICE, answers), name="provml-country", daemon=True
    )
    asking.start()
    try:
        answer = answers.get(timeout=LONGEST_LOOKUP)
    except queue.Empty:
        raise TimeoutError(f"no answer within {LONGEST_LOOKUP:g} s") from None
    if isinstance(answer, Exception):
        raise answer
    return country_of(answer)


def _ask(service: str, answers: queue.SimpleQueue[Any]) -> None:
    try:
        # The scheme is that of our own constant.
        with urllib.request.urlopen(service, timeout=LONGEST_LOOKUP) as response:  # noqa: S310
            found = json.loads(response.read(_LONGEST_ANSWER))
        answers.put(str(found["country"]))
    except urllib.error.HTTPError as error:
        with error:
            answers.put(OSError(str(error)))
    except OSError as error:
        answers.put(error)
    except Exception as error:  # noqa: BLE001  whatever it is, the meter goes on without
        answers.put(ValueError(f"its answer tells no country: {error!r}"))
