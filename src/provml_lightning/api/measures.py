"""Measure something now and keep it as a metric of the current run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from provml_lightning.domain.folding import Fold, FoldOperation, fold_of
from provml_lightning.domain.records import FinalMetric
from provml_lightning.domain.scalars import to_value
from provml_lightning.errors import ConfigurationError
from provml_lightning.runtime.active import current, deliver, innermost
from provml_lightning.runtime.folds import register_fold
from provml_lightning.runtime.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provml_lightning.runtime.active import AnyRun
    from provml_lightning.samplers.system import Value

__all__ = [
    "log_carbon_metrics",
    "log_current_execution_time",
    "log_system_metrics",
    "register_final_metric",
]


def log_current_execution_time(
    label: str, context: str | None = None, step: int | None = None
) -> None:
    """Keep the time since the run began, as a metric [s].

    Args:
        label: The metric's name, any text.
        context: What it belongs to; None for the run itself.
        step: Whole number, or None [1].

    Raises:
        NoActiveRunError: No run is open.

    Source:
        The system clock, at the call and when the run opened.
    """
    run = innermost()
    if isinstance(run, Run):
        now = time.time_ns()
        seconds = (now - run.opened.time) / 1e9
        run.record_metric(label, seconds, context, step, "time", time=now, unit="s")


def register_final_metric(
    metric_name: str,
    initial_value: float,
    fold_operation: FoldOperation | str | Fold = FoldOperation.MAX,
) -> None:
    """Fold a metric's values into one when the run ends; the result is an attribute of the run.

    Nothing is added to the cost of logging: the values are folded when the documents are written,
    in the order in which they were logged, those of every context and source.

    Args:
        metric_name: The metric, whether it has been logged or not.
        initial_value: What the folding begins with.
        fold_operation: MAX, MIN, ADD or SUBTRACT, or a function ``(folded, value) -> folded``.

    Raises:
        ConfigurationError: There is no such operation.
        RecordError: The initial value is not a number.
    """
    initial = to_value(metric_name, initial_value)
    fold, name = _fold(fold_operation)
    registered = FinalMetric(
        time=time.time_ns(), metric=metric_name, initial=initial, operation=name
    )
    deliver(lambda run: register_fold(run, registered, fold))


def log_system_metrics(context: str | None = None, step: int | None = None) -> None:
    """Keep what the machine did since the last call of the run.

    At most sixteen metrics: ``cpu_usage_pct`` [%], ``cpu_power`` [W], ``cpu_energy`` [J],
    ``ram_usage_pct`` [%], ``ram_usage_gb`` [GB], ``ram_power`` [W], ``ram_energy`` [J],
    ``disk_usage_gb`` [GB], ``disk_usage_pct`` [%], ``gpu_usage_pct`` [%], ``gpu_power`` [W],
    ``gpu_energy`` [J], ``gpu_memory_usage_gb`` [GB], ``gpu_memory_usage_pct`` [%],
    ``gpu_memory_power`` [W], ``gpu_temperature_c`` [°C]. A GB is 10⁹ bytes.

    A metric that this machine cannot tell is absent, and the document says why; its ``source``
    tells a sensor from a model. Energies are those of the interval, so that they add up to the
    whole; powers and usages are means over it, or over the last second where it is shorter. The
    first call opens the sensors and waits for a tenth of a second. Made before any run is open,
    it only begins the first interval, when one opens. What a :class:`SystemMonitor` of the
    Trainer took meanwhile is not in it.

    Args:
        context: What it belongs to; None for the run itself.
        step: Whole number, or None [1].

    Raises:
        ConfigurationError: A variable ``PROVML_CPU_TDP_W``, ``PROVML_CPU_IDLE_FRACTION`` or
            ``PROVML_RAM_POWER_W`` is not a number that can be.

    Source:
        docs/reference/metrics.md lists the sources of each metric.
    """
    # Imported at the first call, for most runs measure nothing.
    from provml_lightning.runtime.sampling import begin_sampling, sampling_of

    run = current()
    if run is None:
        deliver(begin_sampling)
    elif (sampling := sampling_of(run)) is not None:
        _keep(run, sampling.system_values(), context, step)


def log_carbon_metrics(context: str | None = None, step: int | None = None) -> None:
    """Keep the energy that the machine used since the last call of the run, and its emissions.

    At most nine metrics: ``emissions`` [gCO2eq], ``emissions_rate`` [gCO2eq/s], ``cpu_power``,
    ``gpu_power``, ``ram_power`` [W], ``cpu_energy``, ``gpu_energy``, ``ram_energy``,
    ``energy_consumed`` [J]. Their ``source`` begins with ``carbon:``, for their intervals are not
    those of :func:`log_system_metrics`.

    Emissions are energy times the carbon intensity of the run's ``country``, ``region`` or
    ``carbon_intensity``, times its ``pue``. Where none of them was told, or with
    ``disable_codecarbon``, the energies are kept alone, and a warning and the document say so.
    Nothing is asked of the network. What a :class:`CarbonMonitor` of the Trainer took meanwhile is
    not in it.

    Args:
        context: What it belongs to; None for the run itself.
        step: Whole number, or None [1].

    Raises:
        ConfigurationError: As :func:`log_system_metrics` does; or the run is strict, and
            ``disable_codecarbon`` was set.

    Source:
        docs/reference/metrics.md lists the sources; the intensities are CodeCarbon's.
    """
    from provml_lightning.runtime.sampling import begin_sampling, sampling_of

    run = current()
    if run is None:
        deliver(begin_sampling)
    elif (sampling := sampling_of(run)) is not None:
        _keep(run, sampling.carbon_values(), context, step)


def _keep(run: AnyRun, values: Iterable[Value], context: str | None, step: int | None) -> None:
    now = time.time_ns()
    for name, value, unit, source in values:
        run.record_metric(name, value, context, step, source, time=now, unit=unit)


def _fold(operation: FoldOperation | str | Fold) -> tuple[Fold, str]:
    if callable(operation) and not isinstance(operation, str):
        name = getattr(operation, "__qualname__", type(operation).__qualname__)
        module = getattr(operation, "__module__", None)
        return operation, f"{module}.{name}" if module else name
    spelled = str(operation).lower().removeprefix("foldoperation.")
    fold = fold_of(spelled)
    if fold is None:
        choices = ", ".join(repr(choice.value) for choice in FoldOperation)
        raise ConfigurationError(
            f"fold_operation={operation!r} is unknown; choose one of {choices}, or a function"
        )
    return fold, spelled
