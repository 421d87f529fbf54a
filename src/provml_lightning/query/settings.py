"""Which of the many settings that a library tells of itself are asked for most."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provml_lightning.query.overview import ParameterFacts

__all__ = ["asked_most"]

# An optimizer stands before its own learning rate, so one pattern takes both.
_ASKED = (
    r"optimizer/[^/]+(/lr)?",
    r"trainer/max_epochs",
    r"trainer/precision",
    r"trainer/accelerator",
    r"seed/global",
)


def asked_most(parameters: Sequence[ParameterFacts]) -> tuple[ParameterFacts, ...]:
    """Return optimizers and their learning rates, epochs, precision, accelerator and seed."""
    return tuple(
        one for asked in _ASKED for one in parameters if re.fullmatch(asked, one.name) is not None
    )
