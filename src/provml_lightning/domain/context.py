"""The context of a record: the part of the run that it belongs to."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["PREDICTION", "Context", "canonical_context"]


class Context(StrEnum):
    """The contexts that the documents name; any other string is a context of the user's."""

    TRAINING = "Training"
    VALIDATION = "Validation"
    TESTING = "Testing"
    DATASETS = "Datasets"
    MODELS = "Models"


# What Lightning does beside the documents' three.
PREDICTION = "Prediction"

_KNOWN = {context.value.lower(): context.value for context in Context}


def canonical_context(context: object) -> str | None:
    """Return the context's one spelling: known ones are recognised in any case.

    ``"TRAINING"``, ``"training"`` and ``"Context.TRAINING"`` are ``"Training"``; ``None`` is the
    run itself; every other string is kept as it is.
    """
    if context is None:
        return None
    # What the text is, not what a subclass (such as an enumeration of the user's) shows.
    text = str.__str__(context) if isinstance(context, str) else str(context)
    return _KNOWN.get(text.removeprefix("Context.").lower(), text)
