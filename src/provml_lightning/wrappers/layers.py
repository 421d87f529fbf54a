"""The hooks on a model's layers: they copy what passes, and change nothing."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from typing_extensions import override

from provml_lightning.errors import RunClosedError, StorageError
from provml_lightning.runtime.active import current
from provml_lightning.runtime.run import Run
from provml_lightning.wrappers.activations import MOST_WAITING, ActivationStore, Forward
from provml_lightning.wrappers.distributions import COMPILED
from provml_lightning.wrappers.tensors import host_copy, marked, tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import nn

    from provml_lightning.wrappers.activations import Tracked

__all__ = ["LayerHook", "Tracker", "weighted_layers"]

_is_tracing: Callable[[], bool] = torch.jit.is_tracing  # type: ignore[attr-defined]
_PARAMETRIZATIONS = "parametrizations"
_TOO_LARGE = f"it has more than {MOST_WAITING >> 20} MiB; give fewer layers="


def weighted_layers(
    model: nn.Module, kinds: Sequence[type[nn.Module]] | None = None
) -> Iterator[tuple[str, nn.Module]]:
    """Return the layers of ``kinds`` by name; without kinds, those with weights and nothing inside.

    A layer of many names has its first; the model itself, where it is one layer, is ``"root"``.
    What ``torch.compile`` puts before the names is left out.
    """
    for name, module in model.named_modules():
        if _PARAMETRIZATIONS in name.split("."):
            continue
        if isinstance(module, tuple(kinds)) if kinds is not None else _is_leaf(module):
            yield name.removeprefix(COMPILED) or "root", module


def _is_leaf(module: nn.Module) -> bool:
    inside = {name for name, _ in module.named_children()}
    return inside <= {_PARAMETRIZATIONS} and any(True for _ in module.parameters())


class Tracker:
    """Follows the forward passes of one model, each in the run that is current when it begins.

    A copy, or one that was unpickled, goes into a folder of its own.
    """

    def __init__(self, asked: Tracked) -> None:
        self._asked = asked
        self._reset()
        # Under torch.compile these run as plain Python, between the graphs.
        plain: Callable[[Any], Any] = torch.compiler.disable
        self.begin, self.take, self.end = map(plain, (self._begin, self._take, self._end))

    @override
    def __reduce__(self) -> Any:
        return type(self), (self._asked,)

    def settle(self) -> None:
        """Write what waits, and tell the runs that are open."""
        for run, store in list(self._stores.items()):
            if run.is_open:
                store.settle()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._stores: WeakKeyDictionary[Run, ActivationStore] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._active = threading.local()

    def _begin(self, *, training: bool) -> bool:
        """Begin to follow a forward pass of this thread; tell whether it is one to follow."""
        if os.getpid() != self._pid:  # a process born by fork has neither our threads nor files
            self._reset()
        run = current()
        if not isinstance(run, Run) or self._following() is not None or _is_tracing():
            return False
        store = self._stores.get(run)
        room = MOST_WAITING if store is None else store.room
        if room is not None:
            self._active.forward = Forward(training=training, room=room)
        return room is not None

    def _take(self, layer: str, inputs: Any, outputs: Any) -> None:
        """Copy what passed through a layer, if a forward pass is followed and there is room."""
        forward = self._following()
        if forward is None:
            return
        for kind, values in (("input", inputs), ("output", outputs)):
            for number, tensor in enumerate(tensors_in(values)):
                if forward.lost is None:
                    _copy(forward, layer, f"{kind}.{number}" if number else kind, tensor)

    def _end(self, model: nn.Module, *, whole: bool) -> None:
        """End the forward pass; one that raised is not kept."""
        forward, self._active.forward = self._following(), None
        run = current()
        if forward is None or not whole or not isinstance(run, Run):
            return
        if not forward.tensors and forward.lost is None:
            return
        forward.events = marked(forward.devices)
        try:
            self._store(run, model).put(forward)
        except RunClosedError:  # another thread closed it meanwhile
            return
        except StorageError as error:
            run.excuse("activations", error)

    def _following(self) -> Forward | None:
        forward: Forward | None = getattr(self._active, "forward", None)
        return forward

    def _store(self, run: Run, model: nn.Module) -> ActivationStore:
        with self._lock:
            if run not in self._stores:
                self._stores[run] = ActivationStore(run, self._asked, model)
            return self._stores[run]


class LayerHook:
    """What a layer calls after its forward pass."""

    def __init__(self, tracker: Tracker, layer: str) -> None:
        self._tracker, self._layer = tracker, layer

    def __call__(self, _: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """Hand on what went in and came out."""
        self._tracker.take(self._layer, (args, kwargs), output)


def _copy(forward: Forward, layer: str, kind: str, tensor: torch.Tensor) -> None:
    size = tensor.numel() * tensor.element_size()
    if tensor.is_meta or not size:  # it has no values
        return
    if size > forward.room - forward.size:
        alone = forward.size + size > MOST_WAITING
        forward.lost = _TOO_LARGE if alone else "the disk was slower than the training"
    else:
        try:
            forward.tensors.append((layer, kind, host_copy(tensor)))
        except (RuntimeError, NotImplementedError) as error:  # of a sparse or a functional tensor
            forward.lost = f"{layer} cannot be copied ({type(error).__name__})"
        forward.size += size
        forward.devices.add(tensor.device)
    if forward.lost is not None:
        forward.tensors.clear()
