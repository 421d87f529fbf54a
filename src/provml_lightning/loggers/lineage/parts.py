"""The parts of what a Trainer knows; each can be left out."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from provml_lightning.errors import ConfigurationError

__all__ = ["PARTS", "chosen_parts"]

PARTS = (
    "stages", "epochs", "trainer", "seeds", "optimizers", "callbacks", "data", "model",
    "checkpoints",
)  # fmt: skip


def chosen_parts(lineage: Any) -> frozenset[str]:
    """Return the parts that a user asked for: all, none, or those that are named.

    Raises:
        ConfigurationError: A name is none of :data:`PARTS`, or it is no collection of names.
    """
    if isinstance(lineage, bool):
        return frozenset(PARTS if lineage else ())
    several = isinstance(lineage, Collection) and not isinstance(lineage, (str, bytes))
    unknown = [part for part in lineage if part not in PARTS] if several else [lineage]
    if unknown:
        raise ConfigurationError(
            f"lineage={lineage!r}: {unknown[0]!r} is no part of a record; give True, False or a"
            f" list of {', '.join(map(repr, PARTS))}"
        )
    return frozenset(lineage)
