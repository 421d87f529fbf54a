"""Floating-point operations of a model's forward pass, counted and never guessed.

``count_batch`` counts one batch, ``count_epoch`` a data set. A count says how it was had: without
weights (``flops.meta``), by one real forward pass (``flops.real``), or by thop (MACs); and whether
operations are missing in it, or batches were only sampled.
"""

from provml_lightning.samplers.flops.counting import count_batch
from provml_lightning.samplers.flops.counts import Count, total
from provml_lightning.samplers.flops.engines import require_engine
from provml_lightning.samplers.flops.epochs import count_epoch
from provml_lightning.samplers.flops.waiting import await_device

__all__ = ["Count", "await_device", "count_batch", "count_epoch", "require_engine", "total"]
