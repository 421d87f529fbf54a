"""What a tracked model's layers took and gave, written in the background, bounded everywhere."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from provml_lightning.capture.artifacts import describe_file, free_name
from provml_lightning.capture.torch_objects import model_facts
from provml_lightning.domain.names import file_name, folder_name
from provml_lightning.domain.records import Artifact, Model, Note
from provml_lightning.errors import ProvMLError, RecordDroppedWarning
from provml_lightning.runtime.faults import warn
from provml_lightning.wrappers.chunks import ChunkFile
from provml_lightning.wrappers.tensors import to_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import torch

    from provml_lightning.runtime.run import Run

__all__ = ["MOST_WAITING", "SOURCE", "ActivationStore", "Forward", "Tracked"]

SOURCE = "activations"
MOST_WAITING = 128 << 20  # bytes
_LONGEST_WAIT = 10.0  # seconds


@dataclass(frozen=True, slots=True)
class Tracked:
    """What a tracked model was asked for.

    Attributes:
        label: The model's name.
        context: What it belongs to, in its one spelling.
        chunk_size: Samples in a chunk [1].
        max_bytes: What may be kept of it in one run [B].
    """

    label: str
    context: str | None
    chunk_size: int
    max_bytes: int


@dataclass(slots=True)
class Forward:
    """One forward pass: its tensors on the host by layer and kind, and what they wait for.

    ``lost`` says why it is not kept, once something went wrong.
    """

    training: bool
    room: int
    number: int = 0
    size: int = 0
    tensors: list[tuple[str, str, torch.Tensor]] = field(default_factory=list)
    devices: set[torch.device] = field(default_factory=set)
    events: list[Any] = field(default_factory=list)
    lost: str | None = None


class ActivationStore:
    """The folder of one tracked model in one run, and the thread that writes it.

    Args:
        run: The run, which is open.
        asked: What is kept.
        model: The bare model.

    Raises:
        StorageError: The folder cannot be made.
    """

    def __init__(self, run: Run, asked: Tracked, model: Any) -> None:
        self._run, self._asked = run, asked
        wanted = folder_name(asked.label) + (f"~rank{run.rank}" if run.rank else "")
        self._folder = free_name(run.layout.artifacts, wanted, is_folder=True)
        self._shown = run.layout.relative(self._folder)
        self._files: dict[tuple[str, str], ChunkFile] = {}
        self._queue: SimpleQueue[Forward | threading.Event | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._seen = self._waiting = 0
        self._kept = self._told = 0  # the writer's own
        self._dropped: Counter[str] = Counter()
        self._stopped = False
        run.record(self._model(model))
        run.contributors.add(self.settle)
        run.contributors.add(self.close, at_close=True)
        threading.Thread(target=self._work, name="provml-activations", daemon=True).start()

    @property
    def room(self) -> int | None:
        """How many bytes a forward pass may bring now [B]; None where nothing more is kept."""
        return None if self._stopped else MOST_WAITING - self._waiting

    def put(self, forward: Forward) -> None:
        """Take a forward pass, or count one that was lost."""
        with self._lock:
            forward.number, self._seen = self._seen, self._seen + 1
            if forward.lost is not None:
                self._dropped[forward.lost] += 1
                return
            self._waiting += forward.size
        self._queue.put(forward)

    def settle(self) -> None:
        """Write what waits, at most 10 s long, and tell the run what the folder holds now."""
        written = threading.Event()
        self._queue.put(written)
        if not written.wait(_LONGEST_WAIT):
            self._note(f"not everything was written within {_LONGEST_WAIT:.0f} s", 1)
        with self._lock:
            dropped, self._dropped = self._dropped, Counter()
        for reason, count in dropped.items():
            self._note(f"a forward pass was not kept: {reason}", count)
        if self._kept > self._told:
            self._told = self._kept
            self._run.record(self._artifact())

    def close(self) -> None:
        """Let the thread end."""
        self._stopped = True
        self._queue.put(None)

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            if isinstance(item, threading.Event):
                self._guarded(self._flush)
                item.set()
                continue
            if not self._stopped:
                self._guarded(self._write, item)
            with self._lock:
                self._waiting -= item.size

    def _guarded(self, write: Any, *args: Any) -> None:
        try:
            write(*args)
        except OSError as error:
            self._stop(f"the disk took nothing more ({error.strerror or error})")
        except (RuntimeError, TypeError, ValueError) as error:  # a tensor that is no plain one
            with self._lock:
                self._dropped[f"it cannot be written ({error})"[:200]] += 1

    def _write(self, forward: Forward) -> None:
        for event in forward.events:
            event.synchronize()
        arrays = [(layer, kind, to_array(tensor)) for layer, kind, tensor in forward.tensors]
        if self._size(arrays) > self._asked.max_bytes:
            self._stop(f"max_bytes={self._asked.max_bytes} are reached")
            return
        for layer, kind, array in arrays:
            self._file(layer, kind).add(forward.number, array, training=forward.training)
        self._kept += 1

    def _size(self, arrays: Sequence[tuple[str, str, np.ndarray]]) -> int:
        """Return what lies on disk at most, once these and all before them are written [B]."""
        after = {path: file.after() for path, file in self._files.items()}
        for layer, kind, array in arrays:
            now = after.get((layer, kind), 0)
            after[layer, kind] = max(now, self._file(layer, kind).after(array))
        return sum(after.values())

    def _flush(self) -> None:
        for file in self._files.values():
            file.flush()

    def _file(self, layer: str, kind: str) -> ChunkFile:
        if (layer, kind) not in self._files:
            path = self._folder / f"{file_name(layer, kind)}.npys"
            self._files[layer, kind] = ChunkFile(path, self._asked.chunk_size)
        return self._files[layer, kind]

    def _stop(self, reason: str) -> None:
        if self._stopped:
            return
        self._stopped = True
        message = f"{self._asked.label}: activations are no longer recorded: {reason}"
        with suppress(ProvMLError):  # the run may be closed by now, or its disk be full too
            self._run.record(Note(time=time.time_ns(), topic=SOURCE, message=message))
        warn(message, RecordDroppedWarning)

    def _note(self, message: str, count: int) -> None:
        told = f"{self._asked.label}: {message}"
        self._run.record(Note(time=time.time_ns(), topic=SOURCE, message=told, count=count))

    def _model(self, model: Any) -> Model:
        """Return what is true from the start, for the document of a run that is killed."""
        return Model(
            time=time.time_ns(),
            name=self._asked.label,
            context=self._asked.context,
            source=SOURCE,
            attributes={**model_facts(model), "activations": self._shown},
        )

    def _artifact(self) -> Artifact:
        return Artifact(
            time=time.time_ns(),
            name=self._asked.label,
            stored=describe_file(self._folder, shown_as=self._shown),
            context=self._asked.context,
            source=SOURCE,
            attributes={
                "forward_passes": self._kept,
                "layers": len({layer for layer, _ in self._files}),
                "chunk_size": self._asked.chunk_size,
                "chunk_format": "npy, appended: marks (forward, training) and samples in turn",
            },
        )
