"""The loaders that a Trainer reads in a stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import islice
from typing import Any

from provml_lightning.capture.foreign import attribute
from provml_lightning.domain.context import PREDICTION, Context
from provml_lightning.loggers.stages import SANITY_CHECK

__all__ = ["data_module_of", "loaders_of"]

_MOST = 64
_WHERE = {
    Context.TRAINING.value: ("train", "train_dataloader"),
    Context.VALIDATION.value: ("val", "val_dataloaders"),
    SANITY_CHECK: ("val", "val_dataloaders"),
    Context.TESTING.value: ("test", "test_dataloaders"),
    PREDICTION: ("predict", "predict_dataloaders"),
}


def loaders_of(trainer: Any, context: str) -> dict[str, Any]:
    """Return the loaders that a Trainer reads in a context, by a label each.

    They are those that Lightning made of the user's, with the samplers that it put in. Of several
    the labels are numbered, or end in the user's own keys: ``val/0``, ``train/images``.
    """
    label, name = _WHERE[context]
    return dict(islice(_labelled(label, attribute(trainer, name)), _MOST))


def data_module_of(trainer: Any, context: str) -> Any:
    """Return the data module that the loaders of a context come from; None where it is none.

    Source:
        Lightning 2.6 keeps ``trainer.datamodule`` also where a later ``test`` is given loaders;
        the loop that reads them knows where it has them from.
    """
    fits = str(getattr(trainer.state.fn, "value", "")) == "fit"
    validates = ("fit_loop", "epoch_loop", "val_loop") if fits else ("validate_loop",)
    others: dict[str, tuple[str, ...]] = {
        Context.TRAINING.value: ("fit_loop",),
        Context.TESTING.value: ("test_loop",),
        PREDICTION: ("predict_loop",),
    }
    loop = reduce(attribute, others.get(context, validates), trainer)
    module = trainer.datamodule
    return module if attribute(attribute(loop, "_data_source"), "instance") is module else None


def _labelled(label: str, found: Any) -> Iterator[tuple[str, Any]]:
    combined = attribute(found, "iterables")  # Lightning's CombinedLoader
    if combined is not None:
        yield from _labelled(label, combined)
    elif isinstance(found, Mapping):
        for key, one in found.items():
            yield from _labelled(f"{label}/{key}", one)
    elif isinstance(found, (list, tuple)):
        for number, one in enumerate(found):
            yield from _labelled(label if len(found) == 1 else f"{label}/{number}", one)
    elif found is not None:
        yield label, found
