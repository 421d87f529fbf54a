"""What a run was asked for, checked before anything is written."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from enum import StrEnum
from os import PathLike
from pathlib import Path
from typing import Any

from provml_lightning.domain.carbon import CarbonSettings
from provml_lightning.errors import ConfigurationError, UnsupportedFormatError

__all__ = ["CompressorType", "MetricsType", "RunSettings", "project_folder"]


class MetricsType(StrEnum):
    """The forms in which metrics can be kept."""

    PARQUET = "parquet"
    CSV = "csv"
    ZARR = "zarr"
    NETCDF = "netcdf"

    @classmethod
    def of(cls, value: Any) -> MetricsType:
        """Return the form that a user spelled, in any case; ``nc`` is NetCDF.

        Raises:
            UnsupportedFormatError: There is no such form.
        """
        spelled = str(value).lower().removeprefix("metricstype.")
        try:
            return cls("netcdf" if spelled == "nc" else spelled)
        except ValueError:
            choices = ", ".join(repr(choice.value) for choice in cls)
            raise UnsupportedFormatError(
                f"metrics_file_type={value!r} is unknown; choose one of {choices}"
            ) from None


class CompressorType(StrEnum):
    """The compressors that the documents name; which of them fit depends on the form."""

    NONE = "none"
    ZIP = "zip"
    ZSTD = "zstd"
    BLOSC_ZSTD = "blosc_zstd"
    LZ4 = "lz4"

    @classmethod
    def of(cls, value: Any) -> CompressorType | bool | None:
        """Return the compressor that a user spelled, in any case; None and booleans stay.

        Raises:
            UnsupportedFormatError: There is no such compressor.
        """
        if value is None or isinstance(value, bool):
            return value
        try:
            return cls(str(value).lower().removeprefix("compressortype."))
        except ValueError:
            choices = ", ".join(repr(choice.value) for choice in cls)
            raise UnsupportedFormatError(
                f"use_compressor={value!r} is unknown; choose True, False or one of {choices}"
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The options of a run.

    Attributes:
        experiment_name: The experiment; its runs are counted.
        prov_user_namespace: Namespace of everything that the document names; a bare host is made
            an IRI. None: one made from the run's UUID.
        provenance_save_dir: The project's folder.
        collect_all_processes: Every rank records, not rank zero alone.
        save_after_n_logs: Values that may wait in memory where files cannot be mapped [1].
        rank: Global rank of this process; None: asked from the launcher.
        metrics_file_type: Form of the metrics files.
        csv_separator: Separator of the CSV form, one character.
        use_compressor: Compressor of the metrics files; None or True: the form's own choice,
            False: none.
        use_run_id: Continue, or make, the run with this number.
        carbon: Where the electricity comes from, and whether emissions are told.
        unify_experiments: Write all runs of the experiment into one document at the end.
        strict: Storage faults raise instead of warning.
    """

    experiment_name: str
    prov_user_namespace: str | None = None
    provenance_save_dir: Path = Path("prov")
    collect_all_processes: bool = False
    save_after_n_logs: int = 100
    rank: int | None = None
    metrics_file_type: MetricsType = MetricsType.PARQUET
    csv_separator: str = ","
    use_compressor: CompressorType | bool | None = None
    use_run_id: int | None = None
    carbon: CarbonSettings = field(default_factory=CarbonSettings)
    unify_experiments: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        """Check what can be checked without a disk.

        Raises:
            ConfigurationError: A setting cannot work.
            UnsupportedFormatError: The metrics file type or the compressor is unknown.
        """
        set_ = object.__setattr__
        set_(self, "experiment_name", _text("experiment_name", self.experiment_name))
        set_(self, "provenance_save_dir", project_folder(self.provenance_save_dir))
        if self.prov_user_namespace is not None:
            _text("prov_user_namespace", self.prov_user_namespace)
        for name in ("collect_all_processes", "unify_experiments", "strict"):
            _truth(name, getattr(self, name))
        _count("save_after_n_logs", self.save_after_n_logs, least=1)
        for name in ("rank", "use_run_id"):
            if getattr(self, name) is not None:
                _count(name, getattr(self, name), least=0)
        if len(self.csv_separator) != 1 or self.csv_separator in '"\r\n':
            raise ConfigurationError(
                f"csv_separator={self.csv_separator!r} must be one character, not a quote or a"
                " line break"
            )
        set_(self, "metrics_file_type", MetricsType.of(self.metrics_file_type))
        set_(self, "use_compressor", CompressorType.of(self.use_compressor))


def _truth(name: str, value: Any) -> None:
    if not isinstance(value, bool):  # such as the text "false" of a variable, which is true
        raise ConfigurationError(f"{name}={value!r} must be True or False")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{name}={value!r} must be a text that is not empty")
    return str(value)


def project_folder(path: Any) -> Path:
    """Return the project's folder as an absolute path; None is ``prov`` where we are now.

    Raises:
        ConfigurationError: It is no path, or relative to a folder that is gone.
    """
    path = "prov" if path is None else path
    if not isinstance(path, (str, PathLike)) or "\0" in str(path):
        raise ConfigurationError(f"provenance_save_dir={path!r} must be the path of a folder")
    try:
        return Path(path).absolute()
    except OSError as error:
        raise ConfigurationError(
            f"provenance_save_dir={str(path)!r} is relative to a working directory that was"
            " removed; give an absolute path"
        ) from error


def _count(name: str, value: Any, *, least: int) -> None:
    if isinstance(value, bool):
        raise ConfigurationError(f"{name}={value!r} must be a whole number")
    try:
        number = operator.index(value)
    except TypeError:
        raise ConfigurationError(f"{name}={value!r} must be a whole number") from None
    if number < least:
        raise ConfigurationError(f"{name}={value!r} must be at least {least}")
