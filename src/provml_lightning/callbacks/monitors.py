"""SystemMonitor and CarbonMonitor: what the machine did in each stage of a training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lightning.pytorch import Trainer
from typing_extensions import override

from provml_lightning.callbacks.course import Meter, Moment
from provml_lightning.callbacks.monitor import Monitor
from provml_lightning.callbacks.sinks import Sink
from provml_lightning.runtime.sampling import Sampling
from provml_lightning.samplers.carbon import carbon_values
from provml_lightning.samplers.interval import Cursor, Interval
from provml_lightning.samplers.system import Value, system_values

__all__ = ["CarbonMonitor", "SystemMonitor"]


class _SampledMeter:
    """Intervals of a sampler, by stage.

    Args:
        sink: What has the sampler, and takes the values.
        cursor: Returns the place in the sampler's time that all who ask for these values share.
        values: Returns what an interval comes to.
    """

    def __init__(
        self,
        sink: Sink,
        cursor: Callable[[Sampling], Cursor],
        values: Callable[[Sampling, Interval], list[Value]],
    ) -> None:
        self._sink = sink
        self._cursor = cursor
        self._values = values
        self._held: dict[str, Interval] = {}
        self._begun = sink.sampling()  # opened, so that what cannot work raises now

    def begin(self) -> None:
        self._begun = sampling = self._sink.sampling()
        if sampling is not None:
            self._cursor(sampling).leave()

    def count(self, module: Any, batch: Any) -> None:
        pass

    def gather(self, context: str) -> None:
        sampling = self._sink.sampling()
        if sampling is not self._begun:  # that of a run which was ended meanwhile and goes on
            self._held.pop(context, None)
            self.begin()
        elif sampling is not None:
            interval, held = self._cursor(sampling).take(), self._held.get(context)
            self._held[context] = interval if held is None else interval.after(held)

    def tell(self, moment: Moment) -> None:
        sampling, interval = self._sink.sampling(), self._held.pop(moment.context, None)
        if sampling is not None and interval is not None:
            self._sink.keep(self._values(sampling, interval), moment)

    def close(self) -> None:
        self._held.clear()


class SystemMonitor(Monitor):
    """Keeps what the machine did in each stage: ``Trainer(callbacks=[SystemMonitor()])``.

    The metrics of :func:`log_system_metrics`, in the run of the Trainer's ProvMLLogger, or of
    each; without one, in all its other loggers on rank zero, as
    ``SystemMonitor.Training/cpu_power``. Step and epoch are those of the Trainer's own metrics.

    An interval begins with its stage. Validation inside an epoch of training is not in that
    epoch's values, and what lies between stages is in none: it is in the next call of
    :func:`log_system_metrics`. Such calls and monitors of a run share what they measure, so that
    their energies add up and nothing is in two values. With every so many steps, what the end of
    an epoch leaves over is told there; what an exception cuts off is told too.

    Args:
        every: ``"epoch"`` or ``"step"``; validations count as epochs of their own.
        every_n: Tell after each nth of these, counted as Lightning counts [1].
        contexts: Which stages, of Training, Validation, Testing and Prediction.

    Raises:
        ConfigurationError: An argument cannot work; or, when the Trainer starts, it has no
            logger, or a variable of ours is not a number that can be.

    Source:
        docs/reference/metrics.md lists the sources of each metric.
    """

    @override
    def meters(self, trainer: Trainer, sinks: Sequence[Sink]) -> Sequence[Meter]:
        return [
            _SampledMeter(
                sink,
                lambda sampling: sampling.system,
                lambda _, interval: system_values(interval),
            )
            for sink in sinks
        ]


class CarbonMonitor(Monitor):
    """Keeps energy and emissions of each stage: ``Trainer(callbacks=[CarbonMonitor()])``.

    The metrics of :func:`log_carbon_metrics`, kept as :class:`SystemMonitor` keeps its own. Where
    the electricity comes from is told to the ProvMLLogger; without one it is what
    ``PROVML_COUNTRY``, ``PROVML_REGION``, ``PROVML_CARBON_INTENSITY`` and ``PROVML_PUE`` say.
    Where it is not known there is one warning at the start, and the energies are kept alone.

    Args:
        every: ``"epoch"`` or ``"step"``; validations count as epochs of their own.
        every_n: Tell after each nth of these, counted as Lightning counts [1].
        contexts: Which stages, of Training, Validation, Testing and Prediction.

    Raises:
        ConfigurationError: As :class:`SystemMonitor` does; or the run is strict, and
            ``disable_codecarbon`` was set.

    Source:
        docs/reference/metrics.md lists the sources; the intensities are CodeCarbon's.
    """

    @override
    def meters(self, trainer: Trainer, sinks: Sequence[Sink]) -> Sequence[Meter]:
        meters = [
            _SampledMeter(
                sink,
                lambda sampling: sampling.carbon,
                lambda sampling, interval: carbon_values(interval, sampling.electricity),
            )
            for sink in sinks
        ]
        for sink in sinks:
            if (sampling := sink.sampling()) is not None:
                sampling.tell_of_emissions()
        return meters
