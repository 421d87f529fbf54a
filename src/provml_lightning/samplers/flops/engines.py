"""The ways to count one forward pass: without weights, for real, and by thop."""

from __future__ import annotations

import copy
import warnings
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from provml_lightning.errors import (
    ConfigurationError,
    SamplerReadError,
    SamplerUnavailableError,
)
from provml_lightning.samplers.flops.arguments import Arguments
from provml_lightning.samplers.flops.clones import weightless
from provml_lightning.samplers.flops.counts import MAC, Count
from provml_lightning.samplers.flops.keeping import same_chance, same_module
from provml_lightning.samplers.flops.modules import is_scripted, is_sharded
from provml_lightning.samplers.flops.trees import leaves, map_leaves
from provml_lightning.samplers.flops.watching import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor, device, nn

__all__ = ["ENGINES", "check_engine", "reason_of", "require_engine"]


def count_meta(module: nn.Module, given: Arguments) -> Count:
    """Count a copy of the module that has no weights."""
    import torch

    with _in_peace(module, given):
        clone, inputs = _without_weights(module, given, torch.device("meta"))
        return counted(lambda: clone(*inputs.args, **inputs.kwargs), "flops.meta", weightless=True)


def count_real(module: nn.Module, given: Arguments) -> Count:
    """Count one real forward pass, and leave everything as it was."""
    if is_sharded(module):
        raise SamplerReadError(
            "its weights are spread over processes, so that none can run it alone; count the model"
            " before it is sharded"
        )
    with _in_peace(module, given):
        if is_scripted(module):
            module = copy.deepcopy(module)
        inputs = _moved(module, given, _device(module))
        with same_module(module):
            return counted(lambda: module(*inputs.args, **inputs.kwargs), "flops.real")


def count_thop(module: nn.Module, given: Arguments) -> Count:
    """Let thop count a copy of the module that has no weights; what it gives are MACs."""
    import torch

    profile, package = _thop()
    meta = torch.device("meta")
    with _in_peace(module, given):
        clone, inputs = _without_weights(module, given, meta)

        class Call(torch.nn.Module):
            """Gives keywords too; thop itself only gives positions, and no leaf as a root."""

            def __init__(self) -> None:
                super().__init__()
                self.inner = clone

            @override
            def forward(self) -> Any:
                with meta:
                    return self.inner(*inputs.args, **inputs.kwargs)

        macs, _ = profile(Call(), inputs=(), verbose=False)
    return Count(round(macs), MAC, package)


def count_auto(module: nn.Module, given: Arguments) -> Count:
    """Count without weights, and for real where that fails."""
    try:
        return count_meta(module, given)
    except Exception as error:  # noqa: BLE001  a forward of the user's may raise anything
        reason = reason_of(error)
    try:
        count = count_real(module, given)
    except Exception as error:
        raise SamplerReadError(
            f"{reason_of(error)} (and on a copy without weights: {reason})"
        ) from error
    remark = f"one real forward pass was counted; a copy without weights gave {reason}"
    return replace(count, remark=remark)


ENGINES: dict[str, Callable[[nn.Module, Arguments], Count]] = {
    "auto": count_auto,
    "meta": count_meta,
    "real": count_real,
    "thop": count_thop,
}


def check_engine(engine: str) -> None:
    """Raise where there is no such engine.

    Raises:
        ConfigurationError: There is none.
    """
    if engine not in ENGINES:
        choices = ", ".join(map(repr, ENGINES))
        raise ConfigurationError(f"engine={engine!r} is unknown; choose one of {choices}")


def require_engine(engine: str) -> None:
    """Raise where an engine cannot work here.

    Raises:
        ConfigurationError: There is no such engine.
        SamplerUnavailableError: It is thop, and thop is not installed.
    """
    check_engine(engine)
    if engine == "thop":
        _thop()


def reason_of(error: Exception) -> str:
    """Return what went wrong, in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


@contextmanager
def _in_peace(module: nn.Module, given: Arguments) -> Iterator[None]:
    """Put back random numbers, and keep to ourselves what a forward pass warns of."""
    import torch

    inputs = [each for each in leaves([given.args, given.kwargs]) if torch.is_tensor(each)]
    with same_chance([*inputs, *module.parameters()]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _without_weights(
    module: nn.Module, given: Arguments, meta: device
) -> tuple[nn.Module, Arguments]:
    if is_scripted(module):
        raise SamplerReadError("TorchScript keeps its weights itself")
    clone = weightless(module)
    return clone, _moved(clone, given, meta)


def _moved(module: nn.Module, given: Arguments, where: device | None) -> Arguments:
    """Return the arguments where the module is, and of its floating type if it has only one."""
    import torch

    types = {each.dtype for each in module.parameters() if each.is_floating_point()}
    dtype = types.pop() if len(types) == 1 else None

    def move(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return leaf.detach().to(device=where, dtype=dtype if leaf.is_floating_point() else None)
        if where is not None and callable(getattr(leaf, "to", None)):
            return copy.deepcopy(leaf).to(where)  # some, such as graphs, move in place
        return leaf

    return Arguments(map_leaves(move, given.args), map_leaves(move, given.kwargs))


def _device(module: nn.Module) -> device | None:
    """Return where all of its weights are, None where they are at several places or nowhere."""
    tensors: list[Tensor] = [*module.parameters(), *module.buffers()]
    places = {each.device for each in tensors}
    return places.pop() if len(places) == 1 else None


def _thop() -> tuple[Any, str]:
    """Return thop's ``profile`` and the name of the package that is installed as ``thop``."""
    from importlib import metadata

    try:
        with warnings.catch_warnings():
            for said in ("distutils Version classes", "The distutils package is deprecated"):
                warnings.filterwarnings("ignore", said, DeprecationWarning)
            from thop import profile
    except ImportError as error:
        raise SamplerUnavailableError(
            f"engine='thop': thop cannot be imported ({error}); install thop, or count with"
            " engine='auto'"
        ) from error
    try:
        metadata.version("ultralytics-thop")
    except metadata.PackageNotFoundError:
        return profile, "thop"
    return profile, "ultralytics-thop"
