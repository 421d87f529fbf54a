"""Every error and warning of the library.

::

    ProvMLError
    ├─ ConfigurationError (ValueError)      an argument or a setting that cannot work
    ├─ MissingExtraError (ImportError)      an optional package is not installed
    ├─ RunError
    │  ├─ NoActiveRunError (LookupError)    a call needs a run and there is none
    │  └─ RunClosedError                    the run has ended
    ├─ RecordError (ValueError)             something that cannot be recorded as asked
    ├─ SamplerError
    │  ├─ SamplerUnavailableError           the machine has no such sensor
    │  └─ SamplerReadError                  the sensor answered nonsense
    ├─ StorageError                         a file could not be written or read
    │  └─ UnsupportedFormatError (ValueError)
    ├─ ExportError                          an exporter failed; the record itself is whole
    └─ QueryError
       ├─ RecordNotFoundError (KeyError)    names the closest matches
       ├─ AmbiguousMetricError (LookupError)  names the candidates
       ├─ MalformedDocumentError (ValueError)
       └─ SeriesUnavailableError (OSError)  the document names values that are not there

    ProvMLWarning (UserWarning)
    ├─ RecordDroppedWarning                 a value or a fact was not kept
    ├─ StorageWarning                       the disk fails; values wait in memory
    ├─ IncompleteRunWarning                 the answer comes from a run without an end
    └─ SamplerDroppedWarning                a sensor failed and is no longer read
"""

from __future__ import annotations

from typing_extensions import override

__all__ = [
    "AmbiguousMetricError",
    "ConfigurationError",
    "ExportError",
    "IncompleteRunWarning",
    "MalformedDocumentError",
    "MissingExtraError",
    "NoActiveRunError",
    "ProvMLError",
    "ProvMLWarning",
    "QueryError",
    "RecordDroppedWarning",
    "RecordError",
    "RecordNotFoundError",
    "RunClosedError",
    "RunError",
    "SamplerDroppedWarning",
    "SamplerError",
    "SamplerReadError",
    "SamplerUnavailableError",
    "SeriesUnavailableError",
    "StorageError",
    "StorageWarning",
    "UnsupportedFormatError",
]


class ProvMLError(Exception):
    """The root of every error that the library raises on purpose."""


class ConfigurationError(ProvMLError, ValueError):
    """An argument or a setting cannot work; the message holds the value and the remedy."""


class MissingExtraError(ProvMLError, ImportError):
    """An optional package is not installed.

    Args:
        package: The package that is missing.
        extra: The extra of this distribution that brings it.
        purpose: What it is needed for, as the end of "… is needed to".
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{package} is needed to {purpose}: pip install 'provml-lightning[{extra}]'"
        )


class RunError(ProvMLError):
    """A run is not in the state that a call needs."""


class NoActiveRunError(RunError, LookupError):
    """No run is open and the call cannot wait for one."""


class RunClosedError(RunError):
    """The run has ended and takes no more records."""


class RecordError(ProvMLError, ValueError):
    """Something cannot be recorded as it was given."""


class SamplerError(ProvMLError):
    """A measured quantity could not be had."""


class SamplerUnavailableError(SamplerError):
    """The machine has no such sensor, or does not let us read it."""


class SamplerReadError(SamplerError):
    """The sensor answered with something that is not a measurement."""


class StorageError(ProvMLError):
    """A file of a run could not be written or read."""


class UnsupportedFormatError(StorageError, ValueError):
    """The metrics file type or its compressor is not known, or they do not fit."""


class ExportError(ProvMLError):
    """An exporter failed; the record that it was to export is whole."""


class QueryError(ProvMLError):
    """A question to a finished run has no answer."""


class RecordNotFoundError(QueryError, KeyError):
    """Nothing of that name is in the document; the message holds the closest matches."""

    @override
    def __str__(self) -> str:
        """Return the message as it is; KeyError would show its repr."""
        return str(self.args[0]) if self.args else ""


class AmbiguousMetricError(QueryError, LookupError):
    """More than one metric fits; the message lists the candidates."""


class MalformedDocumentError(QueryError, ValueError):
    """The file is not a PROV-JSON document or not a run."""


class SeriesUnavailableError(QueryError, OSError):
    """The document names a series whose values are not where it says, or were cut."""


class ProvMLWarning(UserWarning):
    """The root of every warning of the library."""


class RecordDroppedWarning(ProvMLWarning):
    """A value or a fact was not kept."""


class StorageWarning(ProvMLWarning):
    """The disk fails; values wait in memory and are written when it works again."""


class IncompleteRunWarning(ProvMLWarning):
    """The answer was compiled from the files of a run that has no end."""


class SamplerDroppedWarning(ProvMLWarning):
    """A sensor failed and is not read any more in this run."""
