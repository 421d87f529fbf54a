"""Models that tell the current run what passes through their layers, or what their weights are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from provml_lightning.domain.context import canonical_context
from provml_lightning.domain.scalars import to_step
from provml_lightning.errors import ConfigurationError
from provml_lightning.runtime.active import AnyRun, current, deliver
from provml_lightning.wrappers.activations import Tracked
from provml_lightning.wrappers.distributions import distribution, weights_of
from provml_lightning.wrappers.layers import LayerHook, Tracker, weighted_layers
from provml_lightning.wrappers.transparent import Transparent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import nn

__all__ = ["ProvenanceTrackedModel", "WeightDistributionTrackedModel"]


class ProvenanceTrackedModel(Transparent):
    """A model whose layers' inputs and outputs are kept in the current run, exact.

    It computes what the bare model does, bit for bit. Each layer has a file an input or output at
    ``artifacts/<model_label>`` of the run, written in the background; where the disk is slower
    than the training, whole forward passes are dropped, and the document says how many. Forward
    passes outside a run are not kept.

    Args:
        model_label: What to call the model, any text.
        model: The model.
        context: What it belongs to; None for the run itself.
        chunk_size: Samples in a chunk of a file; so many may be lost where a process is killed [1].
        layers: Classes of the layers to follow; None: every layer with weights and no layers
            inside.
        max_bytes: What may be kept in one run [B].

    Raises:
        ConfigurationError: An argument cannot work, or the model has no such layers.
    """

    def __init__(
        self,
        model_label: str,
        model: Any,
        context: str | None = None,
        chunk_size: int = 64,
        *,
        layers: Sequence[type[nn.Module]] | None = None,
        max_bytes: int = 256 << 20,
    ) -> None:
        super().__init__(model)
        _require_count("chunk_size", chunk_size)
        _require_count("max_bytes", max_bytes)
        context = canonical_context(context)
        tracker = Tracker(Tracked(str(model_label), context, chunk_size, max_bytes))
        hooks = [
            layer.register_forward_hook(LayerHook(tracker, name), with_kwargs=True)
            for name, layer in weighted_layers(model, layers)
        ]
        if not hooks:
            raise ConfigurationError(
                f"the model {model_label!r} has no layers to follow; name their classes with"
                " layers=, such as layers=[torch.nn.ReLU]"
            )
        vars(self).update(_tracker=tracker, _hooks=hooks)

    @override
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the model returns, and follow its layers."""
        if not self._tracker.begin(training=self.training):
            return self._wrapped(*args, **kwargs)
        whole = False
        try:
            output = self._wrapped(*args, **kwargs)
            whole = True
        finally:
            self._tracker.end(self._wrapped, whole=whole)
        return output

    def close(self) -> None:
        """Take the hooks off the model and tell the run what was kept; it goes on as it was."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._tracker.settle()


class WeightDistributionTrackedModel(Transparent):
    """A model whose weights' distributions are told, as metrics, once an epoch.

    Args:
        model_label: What to call the model, any text.
        model: The model.
        context: What it belongs to; None for the run itself.
        chunk_size: Without effect, since the values are metrics.

    Raises:
        ConfigurationError: ``model`` is not a module of torch.
    """

    def __init__(
        self,
        model_label: str,
        model: Any,
        context: str | None = None,
        chunk_size: int = 64,
    ) -> None:
        super().__init__(model)
        _require_count("chunk_size", chunk_size)
        vars(self).update(_label=str(model_label), _context=canonical_context(context))

    def log_epoch(self, epoch: int) -> None:
        """Tell mean, std, min, max, p25, p50 and p75 of each layer's weights.

        The metrics are called ``<model_label>/<layer>/<statistic>``; their step is the epoch.

        Args:
            epoch: Whole number [1].

        Raises:
            RecordError: The epoch is not a whole number.
        """
        number: Any = to_step(self._label, epoch)
        now = time.time_ns()
        run = current()
        if run is not None and not run.records:
            return
        found = {
            f"{self._label}/{layer}/{statistic}": value
            for layer, weights in weights_of(self.unwrapped)
            for statistic, value in distribution(weights).items()
        }
        about = {"context": self._context, "step": number, "epoch": number, "source": "weights"}

        def tell(opened: AnyRun) -> None:
            for name, value in found.items():
                opened.record_metric(name, value, **about, time=now)

        deliver(tell)

    def close(self) -> None:
        """Do nothing: every value is in the run when its call returns."""


def _require_count(name: str, value: Any) -> None:
    if not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"{name}={value!r} must be a whole number of at least 1")
