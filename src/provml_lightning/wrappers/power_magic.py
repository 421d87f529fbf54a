"""The notebook magic ``%%measure_power``; IPython calls it, and it imports nothing of IPython."""

from __future__ import annotations

import argparse
import asyncio
import shlex
from typing import Any, NoReturn

from typing_extensions import override

from provml_lightning.errors import ConfigurationError
from provml_lightning.wrappers.power_meter import PowerMeter

__all__ = ["load_ipython_extension"]

_OPTIONS = ("step", "data_type", "data_shape", "algorithm_params", "comments")


class _Parser(argparse.ArgumentParser):
    """Raises where a program would exit."""

    @override
    def error(self, message: str) -> NoReturn:
        raise ConfigurationError(f"%%measure_power: {message}; {self.format_usage().strip()}")


def load_ipython_extension(ipython: Any) -> None:
    """Register ``%%measure_power METER PACKAGE ALGORITHM [--step STEP] …`` in a shell.

    Called by ``%load_ext prov4ml.power_magic``.
    """

    def measure_power(line: str, cell: str) -> None:
        """Measure a cell with a PowerMeter, and keep the row; its other options are in usage."""
        options = _parsed(line)
        meter = _meter(ipython, options.pop("power_meter"))
        _refuse_await(ipython, cell)
        with meter(**options):
            ipython.run_cell(cell).raise_error()

    ipython.register_magic_function(measure_power, "cell", "measure_power")


def _refuse_await(ipython: Any, cell: str) -> None:
    """Refuse a cell that awaits, where the kernel's own loop runs: it cannot run a second one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    if ipython.should_run_async(cell, transformed_cell=ipython.transform_cell(cell)):
        raise ConfigurationError(
            "%%measure_power cannot measure a cell that awaits; write in the cell:"
            " async with power_meter('package', 'algorithm'): ..."
        )


def _parsed(line: str) -> dict[str, str]:
    parser = _Parser(prog="%%measure_power", add_help=False)
    for name in ("power_meter", "package", "algorithm"):
        parser.add_argument(name)
    for name in _OPTIONS:
        parser.add_argument(f"--{name}", default="other" if name == "step" else "")
    try:
        return vars(parser.parse_args(shlex.split(line)))
    except ValueError as error:
        raise ConfigurationError(f"%%measure_power {line}: {error}") from error


def _meter(ipython: Any, name: str) -> PowerMeter:
    found = ipython.user_ns.get(name)
    if not isinstance(found, PowerMeter):
        raise ConfigurationError(
            f"%%measure_power: {name} is no PowerMeter here; make one in a cell before:"
            f" {name} = prov4ml.PowerMeter(location='IT')"
        )
    return found
