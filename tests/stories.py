"""What a document says of a training, and a training that leaves checkpoints."""

from __future__ import annotations

import errno
import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.plugins.io import TorchCheckpointIO
from lightning.pytorch.strategies import SingleDeviceStrategy

from tests.conformance.prov.checker import complaints
from tests.conformance.prov.reading import parse
from tests.training import Digits, digits, trainer

if TYPE_CHECKING:
    from lightning.fabric.plugins import CheckpointIO
    from lightning.pytorch import Trainer

__all__ = [
    "Closed",
    "Diary",
    "LabelledDisk",
    "OwnWeights",
    "SavesWeights",
    "document",
    "fitted",
    "paths",
    "relations",
    "versions",
]

Entity = dict[str, Any]


def document(logger: Any) -> dict[str, Any]:
    """Return a run's document, which holds all constraints of PROV."""
    directory = Path(logger.log_dir)
    content = (directory / f"prov_{directory.name}.json").read_bytes()
    assert complaints(parse(content)) == []
    read: dict[str, Any] = json.loads(content)
    return read


def versions(logger: Any) -> dict[str, Entity]:
    """Return the versions of models by id, in the order in which they were made."""
    entities = document(logger)["entity"].items()
    found = {key: one for key, one in entities if "provml:version" in one}
    return dict(sorted(found.items(), key=lambda item: int(item[1]["provml:version"])))


def relations(logger: Any, kind: str, *names: str) -> list[tuple[Any, ...]]:
    found = document(logger).get(kind, {}).values()
    return [tuple(one.get(f"prov:{name}") for name in names) for one in found]


def paths(logger: Any, **marks: Any) -> list[str]:
    return [
        str(Path(logger.log_dir, one["dcterms:identifier"]))
        for one in versions(logger).values()
        if all(one.get(f"provml:{name}") == value for name, value in marks.items())
    ]


class Closed(SingleDeviceStrategy):
    """Lets nobody choose who writes its checkpoints once it is made."""

    @property
    def checkpoint_io(self) -> CheckpointIO:
        return super().checkpoint_io

    @checkpoint_io.setter
    def checkpoint_io(self, io: CheckpointIO) -> None:
        raise NotImplementedError(f"no {type(io).__name__}")


class SavesWeights(Digits):
    """Saves weights alone after every epoch, and takes down what the Trainer says then."""

    def __init__(self) -> None:
        super().__init__()
        self.reported: list[tuple[int, int, str]] = []

    def on_train_epoch_end(self) -> None:
        path = f"weights {self.current_epoch}.ckpt"
        self.reported.append((self.global_step, self.current_epoch, str(Path(path).absolute())))
        with suppress(OSError):
            self.trainer.save_checkpoint(path, weights_only=True)


class OwnWeights(SavesWeights):
    """Gives weights that no torch module was asked for."""

    def state_dict(self, *_: Any, **__: Any) -> Any:
        return {"layer.weight": self.layer.weight, "layer.bias": self.layer.bias}


class Diary(Callback):
    """Takes down what the Trainer reports whenever it saves."""

    def __init__(self) -> None:
        self.saved: list[dict[str, Any]] = []

    def on_save_checkpoint(self, trainer: Trainer, module: Any, checkpoint: dict[str, Any]) -> None:
        del module
        self.saved.append(
            {
                "epoch": checkpoint["epoch"],
                "step": checkpoint["global_step"],
                "score": float(trainer.callback_metrics["val_loss"]),
                "time": datetime.now(UTC),
            }
        )


def fitted(logger: Any, **options: Any) -> tuple[Trainer, ModelCheckpoint, Diary]:
    keeper = ModelCheckpoint(**{"monitor": "val_loss", **options})
    diary = Diary()
    teacher = trainer(logger, max_epochs=4, enable_checkpointing=True, callbacks=[diary, keeper])
    teacher.fit(Digits(), digits(), digits())
    return teacher, keeper, diary


class LabelledDisk(TorchCheckpointIO):
    """A disk of the user's, with a full one at a step and a name."""

    def __init__(self, full_at: int = -1) -> None:
        self.full_at = full_at
        self.label = "scratch"

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, **options: Any) -> str:
        if checkpoint["global_step"] == self.full_at:
            Path(path).write_bytes(b"a beginning")
            raise OSError(errno.ENOSPC, "No space left on device")
        super().save_checkpoint(checkpoint, path, **options)
        return "kept"
