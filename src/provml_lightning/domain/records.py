"""The facts of a run: one frozen record each, told once and never changed.

``time`` is always UTC, in nanoseconds since 1970 [ns]. Paths are relative to the run's directory
unless they are called ``original``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from provml_lightning.domain.commit import Commit
from provml_lightning.domain.files import Continued, FileDeleted, FileUsed, StoredFile
from provml_lightning.domain.measured import Measured
from provml_lightning.domain.power_measure import PowerMeasure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provml_lightning.domain.values import Plain

__all__ = [
    "Artifact",
    "Commit",
    "ContextDeclared",
    "Continued",
    "Dataset",
    "Ended",
    "FileDeleted",
    "FileUsed",
    "FinalMetric",
    "FunctionCall",
    "Item",
    "Measured",
    "Model",
    "ModelVersion",
    "Note",
    "Opened",
    "Parameter",
    "PowerMeasure",
    "Record",
    "Resumed",
    "Series",
    "Status",
    "StoredFile",
]


class Status(StrEnum):
    """How a run stands."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A process began to write this run.

    Attributes:
        namespace: The user's namespace, as it was given.
        parent: IRI of the activity of the run that this one was opened inside, as the parent's
            own document names it; None for a run of its own.
        attributes: What is true of the run from the start.
    """

    time: int
    experiment: str
    run_id: str
    uuid: str
    user: str
    namespace: str | None = None
    parent: str | None = None
    attributes: Mapping[str, Plain] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A metric got its number in this process's point log."""

    time: int
    number: int
    key: str
    context: str | None = None
    source: str | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A setting (or, with ``is_output``, a result) that was told once."""

    time: int
    key: str
    value: Plain
    context: str | None = None
    source: str | None = None
    is_output: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file or folder that the run used or made.

    ``stored`` is the copy inside the run, ``original`` what the caller pointed to; both are None
    where the thing lies elsewhere, such as in a repository. ``category`` is a further PROV type,
    such as ``SourceCode``.
    """

    time: int
    name: str
    stored: StoredFile | None = None
    original: StoredFile | None = None
    context: str | None = None
    source: str | None = None
    step: int | None = None
    category: str | None = None
    is_model: bool = False
    is_input: bool = False
    attributes: Mapping[str, Plain] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model: what it is, and its weights where they were saved."""

    time: int
    name: str
    stored: StoredFile | None = None
    layers: StoredFile | None = None
    context: str | None = None
    source: str | None = None
    is_input: bool = False
    attributes: Mapping[str, Plain] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelVersion:
    """The weights of a model at one moment.

    Told again with the same ``time`` it is the same version, of which more is known; ``told`` is
    when, so that of several processes' words the last counts. ``stored`` is a file inside the run,
    ``original`` one that lies elsewhere. ``derived`` has the times of the versions and data sets
    that it is derived from; None for the version before it and the training data since.
    ``is_trained`` is false for weights that no training data went into.
    """

    time: int
    name: str
    stored: StoredFile | None = None
    original: StoredFile | None = None
    version: int | None = None
    derived: list[int] | None = None
    is_trained: bool = True
    told: int | None = None
    context: str | None = None
    source: str | None = None
    step: int | None = None
    is_input: bool = False
    attributes: Mapping[str, Plain] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A data set that the run used, with its true numbers."""

    time: int
    label: str
    context: str | None = None
    source: str | None = None
    attributes: Mapping[str, Plain] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something that went into the run, or came out of it; every one is an entity of its own."""

    time: int
    name: str
    value: Plain
    value_type: str
    context: str | None = None
    source: str | None = None
    is_output: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextDeclared:
    """A context was named before anything happened in it; a part of another one, perhaps."""

    time: int
    context: str
    parent: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalMetric:
    """A metric's values shall be folded into one; ``value`` is None until they were.

    ``operation`` is one of FoldOperation's values, or the name of a function of the user's.
    """

    time: int
    metric: str
    initial: float
    operation: str
    value: float | None = None
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """One of the first calls of a tracked function in a context, or of its first failures.

    The duration [s] of every call is a value of the metric that has the function's name and
    ``SOURCE``; the failed ones are also values of the metric ``<function>/failed``.

    Attributes:
        time: When it began.
        function: Module and qualified name.
        seconds: How long it took [s].
        arguments: Descriptions by name; none of a failure after the first calls.
        result: Description of what it returned; None where it raised, or has no one result.
    """

    SOURCE: ClassVar[str] = "calls"

    time: int
    function: str
    seconds: float
    context: str | None = None
    arguments: Mapping[str, Plain] = field(default_factory=dict)
    result: str | None = None
    error_type: str | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that the reader must know: values lost, a disk that was full, a missing rank."""

    time: int
    topic: str
    message: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The run ended; ``final`` where this process has written its last record.

    After an end that is not final (a Trainer's ``fit``) the run may go on.
    """

    time: int
    status: Status
    final: bool = False
    error_type: str | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """The run went on after an end."""

    time: int


Record = (
    Opened
    | Commit
    | Resumed
    | Series
    | Parameter
    | PowerMeasure
    | Item
    | Artifact
    | Model
    | ModelVersion
    | Dataset
    | FileUsed
    | FileDeleted
    | Continued
    | ContextDeclared
    | FinalMetric
    | FunctionCall
    | Measured
    | Note
    | Ended
)
