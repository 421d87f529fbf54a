"""FlopsMonitor: what a model computes in each stage, and how fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from lightning.pytorch import Trainer
from typing_extensions import override

from provml_lightning.callbacks.cadence import STAGES
from provml_lightning.callbacks.course import Meter
from provml_lightning.callbacks.monitor import Monitor
from provml_lightning.callbacks.sinks import Sink
from provml_lightning.callbacks.work import WorkMeter
from provml_lightning.samplers.flops import require_engine

__all__ = ["FlopsMonitor"]


class FlopsMonitor(Monitor):
    """Keeps FLOPs and throughput of each stage: ``Trainer(callbacks=[FlopsMonitor()])``.

    ``flops`` [FLOP] is the sum of the forward passes over the batches of the interval, the last
    short one too, as :func:`log_flops_per_batch` counts them through the module's ``forward``;
    the backward pass is not in it. ``flops_per_second`` [FLOP/s], ``batches_per_second`` [1/s]
    and ``samples_per_second`` [1/s] are over the interval's time on the wall, loading of data and
    steps of the optimiser included, without the time that the counting itself takes. They are of
    this process; kept as :class:`SystemMonitor` keeps its metrics.

    Where ``forward`` fails on a batch, or the number of its samples cannot be found as Lightning
    finds it, the values that need it are absent from the interval.

    Args:
        every: ``"epoch"`` or ``"step"``; validations count as epochs of their own.
        every_n: Tell after each nth of these, counted as Lightning counts [1].
        contexts: Which stages, of Training, Validation, Testing and Prediction.
        engine: As of :func:`log_flops_per_batch`; with ``"thop"`` they are ``macs`` [MAC] and
            ``macs_per_second`` [MAC/s].
        synchronize: Wait for the GPU where an interval begins and ends, so that its work is in
            the right one; this slows a training that tells every step.

    Raises:
        ConfigurationError: An argument cannot work; or, when the Trainer starts, it has no logger.
        SamplerUnavailableError: The engine is thop, and thop is not installed.

    Source:
        torch's counter and our formulas, or thop; ``time.perf_counter``.
    """

    def __init__(
        self,
        every: Literal["step", "epoch"] = "epoch",
        every_n: int = 1,
        contexts: Sequence[str] = STAGES,
        *,
        engine: Literal["auto", "meta", "real", "thop"] = "auto",
        synchronize: bool = False,
    ) -> None:
        super().__init__(every, every_n, contexts)
        require_engine(engine)
        self._engine = engine
        self._synchronize = synchronize

    @override
    def meters(self, trainer: Trainer, sinks: Sequence[Sink]) -> Sequence[Meter]:
        place = trainer.strategy.root_device if self._synchronize else None
        return [WorkMeter(sinks, self._engine, place)]
