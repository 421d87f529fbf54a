"""The count of one batch, once for every shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provml_lightning.errors import SamplerReadError, SamplerUnavailableError
from provml_lightning.samplers.flops.arguments import Arguments, readings
from provml_lightning.samplers.flops.counts import Count
from provml_lightning.samplers.flops.engines import ENGINES, check_engine, reason_of
from provml_lightning.samplers.flops.modules import bare
from provml_lightning.samplers.flops.remembering import outcomes_of
from provml_lightning.samplers.flops.trees import signature

if TYPE_CHECKING:
    from torch import nn

__all__ = ["count_batch"]


def count_batch(model: Any, batch: Any, engine: str = "auto") -> Count:
    """Return what a model's forward pass on a batch computes.

    Nothing of the model is changed, nor the state of random numbers, also where it fails. Batches
    of the same shapes are counted once.

    Args:
        model: A module of torch.
        batch: What a loader yields; which part goes into ``forward`` is decided as
            :mod:`provml_lightning.samplers.flops.arguments` says.
        engine: ``"auto"``, ``"meta"``, ``"real"`` or ``"thop"``.

    Raises:
        ConfigurationError: There is no such engine.
        SamplerUnavailableError: The model is no module of torch; or thop is not installed.
        SamplerReadError: The forward pass fails on the batch.
    """
    check_engine(engine)
    module = bare(model)
    failure = None
    for given in readings(module.forward, batch):
        outcome = _outcome(module, given, engine)
        if isinstance(outcome, Count):
            return outcome
        failure = failure or outcome
    raise SamplerReadError(f"{type(module).__qualname__}.forward failed: {failure}")


def _outcome(module: nn.Module, given: Arguments, engine: str) -> Count | str:
    try:
        key = engine, signature((given.args, given.kwargs))
    except TypeError:  # the work may depend on more than can be told of them
        return _count(module, given, engine)
    known = outcomes_of(module)
    outcome = known.get(key)
    if outcome is None:
        outcome = _count(module, given, engine)
        if isinstance(outcome, str) or not outcome.by_values:
            known[key] = outcome
    return outcome


def _count(module: nn.Module, given: Arguments, engine: str) -> Count | str:
    try:
        return ENGINES[engine](module, given)
    except SamplerUnavailableError:
        raise
    except SamplerReadError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001  a forward of the user's may raise anything
        return reason_of(error)
