"""A module that stands for another one, and differs from it in nothing that torch asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from torch import nn
from typing_extensions import override

from provml_lightning.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Transparent"]

_TABLES = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")


class Transparent(nn.Module):
    """Wraps a model under the model's own names.

    Parameters, buffers and submodules are the model's, so ``state_dict`` has the model's keys and
    loads either way; attributes that are read or set are the model's too.

    Args:
        model: The model.

    Raises:
        ConfigurationError: It is not a module of torch.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        given: Any = model
        if not isinstance(given, nn.Module):
            raise ConfigurationError(
                f"model={type(given).__name__} is not a torch.nn.Module; give the model itself"
            )
        own = vars(self)
        for table in _TABLES:
            own[table] = getattr(model, table)
        own["training"] = model.training
        own["_wrapped"] = model

    @property
    def unwrapped(self) -> nn.Module:
        """The bare model."""
        model: nn.Module = vars(self)["_wrapped"]
        return model

    @override
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the model returns."""
        return self._wrapped(*args, **kwargs)

    @override
    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the model."""
        if "_wrapped" not in vars(self):  # it is being unpickled
            raise AttributeError(name)
        return getattr(vars(self)["_wrapped"], name)

    @override
    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute of the model; what torch keeps of the wrapper stays with the wrapper."""
        own = vars(self)
        mine = name in own or "_wrapped" not in own or hasattr(nn.Module, name)
        if mine:
            object.__setattr__(self, name, value)
        if not mine or name == "training":
            setattr(own["_wrapped"], name, value)

    @override
    def __delattr__(self, name: str) -> None:
        if name in vars(self):
            object.__delattr__(self, name)
        else:
            delattr(self.unwrapped, name)

    @override
    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the model in place."""
        self.unwrapped.compile(*args, **kwargs)

    @override
    def train(self, mode: bool = True) -> Self:
        """Set the model's mode."""
        self.unwrapped.train(mode)
        vars(self)["training"] = self.unwrapped.training
        return self

    @override
    def apply(self, fn: Callable[[nn.Module], None]) -> Self:
        """Call ``fn`` on every module of the model."""
        self.unwrapped.apply(fn)
        return self

    @override
    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the model's state, under the model's keys."""
        return self.unwrapped.state_dict(*args, **kwargs)

    @override
    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load a state of the model."""
        return self.unwrapped.load_state_dict(*args, **kwargs)

    @override
    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self.unwrapped._load_from_state_dict(*args, **kwargs)  # noqa: SLF001  what torch calls

    @override
    def _apply(self, *args: Any, **kwargs: Any) -> Self:
        apply: Any = self.unwrapped._apply  # noqa: SLF001  .to(), .half(), .cuda() are this
        apply(*args, **kwargs)
        return self

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.unwrapped!r})"
